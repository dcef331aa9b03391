//! How does a token stay fresh? By the `oauth2_refresh_token` grant (RFC 6749 section 6), ahead of its end, from here.
//!
//! Refresh tokens are often good for one use. So each credential has one task and with it one refresh at a time; a
//! token is replaced by an answer and by nothing else, never by a time-out; and a refresh token that comes in place
//! of the old one is handed out for keeping before either new token is used. When the token that is at hand ends is
//! not known at the start, so the first refresh is made at once. Nothing that was refused upstream causes one: a host
//! that answers 401 could make us spend tokens at will.

mod grant;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bastion_host::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use zeroize::Zeroizing;

use crate::credential::Refreshable;
use crate::policy::RefreshShape;
use crate::proxy::Shared;
use grant::Granted;

/// Gets a credential's variable and its materials, in which something was replaced. It may block.
pub type Rotated = Box<dyn Fn(&str, &[(String, Zeroizing<String>)]) + Send + Sync>;

/// How often it is looked whether something is due: by the wall clock, which goes on while a machine sleeps.
const STEP: Duration = Duration::from_secs(1);
/// A token whose life nobody tells.
const UNTOLD_LIFE: SignedDuration = SignedDuration::from_hours(1);
/// Not more often than this, whatever the answers say.
const SHORTEST: SignedDuration = SignedDuration::from_secs(10);
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(5);
const LAST_RETRY: SignedDuration = SignedDuration::from_mins(5);

/// Keeps all credentials of a run fresh until the proxy stops.
pub(crate) async fn run(shared: Arc<Shared>, clock: Arc<dyn Clock>, rotated: Option<Rotated>) {
    let rotated: Option<Arc<Rotated>> = rotated.map(Arc::new);
    for one in shared.vault.refreshable() {
        tokio::spawn(keep_fresh(Arc::clone(&shared), Arc::clone(&clock), rotated.clone(), one));
    }
}

async fn keep_fresh(
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    rotated: Option<Arc<Rotated>>,
    mut credential: Refreshable,
) {
    let mut due = clock.now();
    let mut failures = 0;
    loop {
        while clock.now() < due {
            tokio::time::sleep(STEP).await;
        }
        let Some(_begun) = Begun::now(&shared) else { return };
        let wait = match grant::ask(&shared, &credential).await {
            Ok(granted) => {
                let expires = take(&shared, clock.now(), rotated.as_ref(), &mut credential, granted).await;
                failures = 0;
                expires.map_or(LAST_RETRY, |life| ahead(life, &credential.shape))
            }
            Err(_) => {
                failures += 1;
                backoff(failures)
            }
        };
        due = clock.now().saturating_add(wait).unwrap_or(Timestamp::MAX);
    }
}

/// Puts what was granted in place: the refresh token first, and for keeping. The life of the new token.
async fn take(
    shared: &Shared,
    now: Timestamp,
    rotated: Option<&Arc<Rotated>>,
    credential: &mut Refreshable,
    granted: Granted,
) -> Option<SignedDuration> {
    if let Some(next) = granted.refresh_token {
        for (name, value) in &mut credential.materials {
            if name == grant::REFRESH_TOKEN {
                *value = next.clone();
            }
        }
        let _ = shared.vault.replace_material(&credential.env, grant::REFRESH_TOKEN, next);
        if let Some(rotated) = rotated {
            let (rotated, env, materials) = (Arc::clone(rotated), credential.env.clone(), credential.materials.clone());
            let _ = tokio::task::spawn_blocking(move || rotated(&env, &materials)).await;
        }
    }
    let life = life(granted.expires_in, &credential.shape);
    let expires = now.saturating_add(life).unwrap_or(Timestamp::MAX);
    shared.vault.replace(&credential.env, granted.access_token, Some(expires)).ok().map(|()| life)
}

/// A refresh that was begun: it is finished, what it gave kept, before the proxy goes.
struct Begun<'s>(&'s Shared);

impl<'s> Begun<'s> {
    /// None where the proxy stops.
    fn now(shared: &'s Shared) -> Option<Self> {
        shared.refreshing.fetch_add(1, Ordering::SeqCst);
        let begun = Self(shared);
        (!*shared.stopped.borrow()).then_some(begun)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.0.refreshing.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How long a token is taken to live.
fn life(expires_in: Option<u64>, shape: &RefreshShape) -> SignedDuration {
    let seconds = |seconds: u64| SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
    let told = expires_in.map(seconds);
    let most = shape.max_lifetime_seconds.map(seconds);
    match (told, most) {
        (Some(told), Some(most)) => told.min(most),
        (Some(life), None) | (None, Some(life)) => life,
        (None, None) => UNTOLD_LIFE,
    }
}

/// How long after it was granted a token with this life is replaced.
fn ahead(life: SignedDuration, shape: &RefreshShape) -> SignedDuration {
    let before = SignedDuration::from_secs(i64::try_from(shape.refresh_before_seconds).unwrap_or(i64::MAX));
    // one that lives shorter than it is to be replaced ahead would be replaced all the time
    let wait = if before < life { life.saturating_sub(before) } else { life / 2 };
    wait.max(SHORTEST)
}

/// How long to wait after so many failures in a row.
fn backoff(failures: u32) -> SignedDuration {
    let factor = 1_i32.checked_shl(failures.saturating_sub(1).min(16)).unwrap_or(i32::MAX);
    FIRST_RETRY.checked_mul(factor).unwrap_or(LAST_RETRY).min(LAST_RETRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(before: u64, most: Option<u64>) -> RefreshShape {
        RefreshShape {
            token_url: "https://auth.example/token".to_owned(),
            refresh_before_seconds: before,
            max_lifetime_seconds: most,
        }
    }

    #[test]
    fn the_shortest_life_that_was_told_counts() {
        let seconds = |expires, most| life(expires, &shape(0, most)).as_secs();
        assert_eq!(seconds(Some(600), None), 600);
        assert_eq!(seconds(Some(600), Some(300)), 300);
        assert_eq!(seconds(None, Some(300)), 300);
        assert_eq!(seconds(None, None), 3600);
        assert_eq!(seconds(Some(u64::MAX), None), i64::MAX);
    }

    #[test]
    fn it_is_replaced_ahead_of_its_end_and_never_all_the_time() {
        let seconds = |life, before| ahead(SignedDuration::from_secs(life), &shape(before, None)).as_secs();
        assert_eq!(seconds(3600, 300), 3300);
        assert_eq!(seconds(3600, 3600), 1800);
        assert_eq!(seconds(3600, u64::MAX), 1800);
        assert_eq!(seconds(0, 0), 10);
        assert_eq!(seconds(i64::MAX, 0), i64::MAX);
    }

    #[test]
    fn failures_are_retried_later_and_later() {
        let waits: Vec<_> = (1..10).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(backoff(u32::MAX), LAST_RETRY);
    }
}
