//! Commands of docs/operations.md, as they stand there: what the manual says and what is tested cannot drift apart.

/// Lines of the block that opens with "```" and `name`.
pub fn commands(name: &str) -> Vec<String> {
    let text = include_str!("../../../docs/operations.md");
    let opening = format!("```{name}\n");
    let (_, rest) = text.split_once(&opening).unwrap_or_else(|| panic!("no block {name} in docs/operations.md"));
    let (block, _) = rest.split_once("\n```").expect("the end of the block");
    block.lines().map(str::to_owned).collect()
}

/// The one command that makes the account of Redis, for another prefix, as its words.
pub fn redis_account(prefix: &str) -> Vec<String> {
    let [command] = &commands("redis-account")[..] else { panic!("one command") };
    let own =
        |word: &str| word.replace("~seckill:", &format!("~{prefix}:")).replace("&seckill:", &format!("&{prefix}:"));
    command.split(' ').map(own).collect()
}
