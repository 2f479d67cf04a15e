//! Writes runs that talk to a model into a store and keeps the active ones alive, to show them in the cockpit:
//!
//! ```text
//! cargo run --example fill_turns -- /tmp/home /path/to/repository
//! REVDECK_HOME=/tmp/home revdeck
//! ```
//!
//! It runs until it is interrupted: one of the runs receives a thousand pieces a second and pauses on request.

use std::error::Error;
use std::time::Duration;

use revdeck::domain::Time;
use revdeck::git::Repo;
use revdeck::store::{HeartbeatState, RepoInfo, Store};

#[path = "turns.rs"]
mod turns;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [home, repository] = arguments.as_slice() else {
        return Err("usage: fill_turns HOME REPOSITORY".into());
    };
    let repo = Repo::discover(repository.as_ref())?;
    let info = RepoInfo {
        version: 1,
        key: repo.key(),
        name: repo.name(),
        common_dir: repo.common_dir().display().to_string(),
    };
    let store = Store::open(&std::path::Path::new(home).join("state"), info)?;
    if store.runs_view()?.run_count() > 0 {
        return Err(format!("{} has runs already: give another HOME", store.root().display()).into());
    }
    let mut working = Vec::new();
    for (number, fate) in (1..).zip(turns::Fate::ALL) {
        let written = turns::write(&store, number, fate, Time::now())?;
        working.push((fate, written));
    }
    for beat in 0_u64.. {
        let now = Time::now();
        for (fate, turns::Written { run, pulse, .. }) in &mut working {
            let Some(pulse) = pulse.as_mut() else { continue };
            if beat.is_multiple_of(100) && matches!(fate, turns::Fate::Receiving | turns::Fate::Paused) {
                let paused = store.run(run)?.is_some_and(|run| run.is_paused());
                *fate = if paused { turns::Fate::Paused } else { turns::Fate::Receiving };
            }
            match fate {
                turns::Fate::Receiving => {
                    pulse.append_text(now, "and ");
                    pulse.add_received_bytes(now, 12);
                }
                turns::Fate::Paused => pulse.set_state(now, HeartbeatState::Paused),
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
