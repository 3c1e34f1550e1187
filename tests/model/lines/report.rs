//! The beginning of the section of `docs/model.md` about lines.

pub const HEAD: &str = "
## Lines

| law | |
|---|---|
";
