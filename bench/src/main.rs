//! The program behind `seckill bench`. All of it is in [`seckill_bench`].

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    seckill::allocator::keep_memory();
    seckill::build_info::set_commit(option_env!("SECKILL_COMMIT"));
    seckill_bench::main()
}
