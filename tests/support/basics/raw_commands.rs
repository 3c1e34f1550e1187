//! Raw commands to Redis and the database, past the product; what fails comes back as an error. Shared by the test binaries.

use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use serde_json::Value;
use std::io;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Sends one command to the Redis at `url`, and returns its answer as JSON; a refusal is an error with the server's text.
pub async fn try_redis(url: &str, command: &[&str]) -> io::Result<Value> {
    try_redis_all(url, &[command]).await
}

/// Sends commands on one connection, and returns the last one's answer; none may be refused.
pub async fn try_redis_all(url: &str, commands: &[&[&str]]) -> io::Result<Value> {
    let rest = url.trim_start_matches("redis://");
    let (login, address) = rest.rsplit_once('@').unwrap_or(("", rest));
    let mut stream = BufReader::new(TcpStream::connect(address).await?);
    if let Some((_, password)) = login.split_once(':') {
        send(&mut stream, &["AUTH", password]).await?;
    }
    let mut answer = Value::Null;
    for command in commands {
        answer = send(&mut stream, command).await?;
    }
    Ok(answer)
}

async fn send(stream: &mut BufReader<TcpStream>, command: &[&str]) -> io::Result<Value> {
    let mut request = format!("*{}\r\n", command.len());
    for part in command {
        request.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    stream.write_all(request.as_bytes()).await?;
    Box::pin(reply(stream)).await
}

/// Runs SQL statements that may be refused, on the database at `url`.
pub async fn try_sql(url: &str, statements: &str) -> diesel::QueryResult<()> {
    let connected = AsyncMysqlConnection::establish(url).await;
    let mut connection = connected.map_err(|error| diesel::result::Error::QueryBuilderError(error.into()))?;
    connection.batch_execute(statements).await
}

async fn reply(stream: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let odd = || io::Error::other(format!("not an answer of redis: {line:?}"));
    let (kind, rest) = line.trim_end().split_at_checked(1).ok_or_else(odd)?;
    let length = || rest.parse::<i64>().map_err(|_not_a_number| odd());
    Ok(match kind {
        "+" => Value::from(rest),
        ":" => Value::from(length()?),
        "$" if length()? < 0 => Value::Null,
        "$" => {
            let mut bytes = vec![0; usize::try_from(length()?).map_err(|_negative| odd())? + 2];
            stream.read_exact(&mut bytes).await?;
            bytes.truncate(bytes.len() - 2);
            Value::from(String::from_utf8_lossy(&bytes).into_owned())
        }
        "*" => {
            let mut items = Vec::new();
            for _ in 0..length()?.max(0) {
                items.push(Box::pin(reply(stream)).await?);
            }
            Value::from(items)
        }
        _ => return Err(io::Error::other(line.trim_end().to_owned())),
    })
}
