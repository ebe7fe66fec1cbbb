//! Messages about allocations for Redis.

use redis::Pipeline;
use tt_status::allocation_messages::{AllocationMessage, KeyChange, MessageOutput};

use crate::redis::{Redis, error_of};

/// Sends messages to Redis: `SET`, `DEL` and `PUBLISH`.
pub(crate) struct RedisOutput {
    redis: Redis,
}

impl RedisOutput {
    pub(crate) const fn new(redis: Redis) -> Self {
        Self { redis }
    }
}

impl MessageOutput for RedisOutput {
    fn send(&mut self, messages: &[AllocationMessage]) -> Result<(), String> {
        let mut connection = self.redis.take_connection().map_err(|error| error.to_string())?;
        // Without a reply to each command in time, the connection is dropped.
        commands(messages).exec(&mut connection).map_err(|error| error_of(&error).to_string())?;
        self.redis.keep_connection(connection);
        Ok(())
    }
}

fn commands(messages: &[AllocationMessage]) -> Pipeline {
    let mut commands = redis::pipe();
    for AllocationMessage { key, text, change } in messages {
        match change {
            KeyChange::Keep => {}
            KeyChange::Set { lifetime_s } => {
                commands.cmd("SET").arg(key).arg(text).arg("EX").arg(lifetime_s).ignore();
            }
            KeyChange::Remove => {
                commands.cmd("DEL").arg(key).ignore();
            }
        }
        commands.cmd("PUBLISH").arg(key).arg(text).ignore();
    }
    if messages.is_empty() {
        commands.cmd("PING").ignore();
    }
    commands
}
