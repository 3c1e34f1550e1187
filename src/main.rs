//! The one binary: roles, subcommands and the local stack. All of it is in [`seckill::cli`].

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Before any thread starts: memory that one crowd needed is kept for the next.
    seckill::allocator::keep_memory();
    // Here, so that another commit compiles nothing but this file (src/build_info.rs).
    seckill::build_info::set_commit(option_env!("SECKILL_COMMIT"));
    seckill::cli::main()
}
