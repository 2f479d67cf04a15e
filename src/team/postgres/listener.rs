//! Hears from the database when others have appended to their logs or ended a claim (`LISTEN`, `NOTIFY`).

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::AsyncMessage;

use super::address::DatabaseAddress;
use super::connection::{Database, DatabaseError};

/// Something that has just happened in a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A log has got new segments; its name.
    Log(String),
    /// The claims of a run have ended; its id.
    Claim(String),
    /// The store of this machine has changed, as a [`NewsSender`] says.
    Store,
}

/// Message of a connection or of this machine.
enum Message {
    /// Text of a notification.
    Notified(String),
    /// See [`News::Store`].
    Store,
    /// The connection has ended.
    Ended,
}

/// Handle that tells a [`Listener`] of changes on this machine, from another thread.
#[derive(Clone)]
pub struct NewsSender(UnboundedSender<Message>);

impl NewsSender {
    /// Tells of a change of the store. Returns false if nobody listens any more.
    pub fn send(&self) -> bool {
        self.0.send(Message::Store).is_ok()
    }
}

/// Connection that hears news of one project.
pub struct Listener {
    database: Database,
    messages: UnboundedReceiver<Message>,
    sender: UnboundedSender<Message>,
    project: String,
}

impl Listener {
    /// Connects and begins to hear. What happened before is no news.
    ///
    /// # Errors
    /// Returns an error when the server cannot be reached or refuses the login.
    pub fn connect(address: &DatabaseAddress, project: &str) -> Result<Self, DatabaseError> {
        let (database, mut connection) = Database::open(address)?;
        let (sender, messages) = unbounded_channel();
        let heard = sender.clone();
        database.runtime.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(said) = message
                    && heard.send(Message::Notified(said.payload().to_owned())).is_err()
                {
                    return;
                }
            }
            let _ = heard.send(Message::Ended);
        });
        database.run_script("asking for news", "LISTEN revdeck")?;
        Ok(Self { database, messages, sender, project: project.to_owned() })
    }

    /// Returns a handle that tells of changes on this machine.
    pub fn sender(&self) -> NewsSender {
        NewsSender(self.sender.clone())
    }

    /// Forgets the news that have come until now, because they are about to be read. The end of the connection stays.
    pub fn forget_news(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            if matches!(message, Message::Ended) {
                let _ = self.sender.send(Message::Ended);
                return;
            }
        }
    }

    /// Waits for news of the project; `None` if there are none within `limit`.
    ///
    /// # Errors
    /// Returns an error when the connection has ended: news may have been missed.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<News>, DatabaseError> {
        let Self { database, messages, project, .. } = self;
        let next = async {
            loop {
                match messages.recv().await {
                    Some(Message::Store) => return Some(News::Store),
                    // News of another project are none.
                    Some(Message::Notified(text)) => {
                        if let Some(news) = read_news(&text, project) {
                            return Some(news);
                        }
                    }
                    Some(Message::Ended) | None => return None,
                }
            }
        };
        match database.runtime.block_on(async { tokio::time::timeout(limit, next).await }) {
            Err(_) => Ok(None),
            Ok(Some(news)) => Ok(Some(news)),
            Ok(None) => {
                let place = database.place().to_owned();
                Err(DatabaseError::Connect { place, what: "the connection has ended".to_owned(), is_login: false })
            }
        }
    }
}

/// Reads `log NAME PROJECT` or `claim RUN PROJECT`.
fn read_news(text: &str, project: &str) -> Option<News> {
    let mut words = text.splitn(3, ' ');
    let (kind, name, about) = (words.next()?, words.next()?, words.next()?);
    match kind {
        _ if about != project => None,
        "log" => Some(News::Log(name.to_owned())),
        "claim" => Some(News::Claim(name.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_news_of_the_project_count() {
        for (text, expected) in [
            ("log ada-1 git.example.org/team app", Some(News::Log("ada-1".to_owned()))),
            ("claim ar_1 git.example.org/team app", Some(News::Claim("ar_1".to_owned()))),
            ("log ada-1 git.example.org/team", None),
            ("oracle x git.example.org/team app", None),
            ("", None),
        ] {
            assert_eq!(read_news(text, "git.example.org/team app"), expected, "{text}");
        }
    }
}
