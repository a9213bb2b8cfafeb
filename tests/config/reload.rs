//! What a reload changes in a running daemon, and what only a restart changes.

use super::check_text;

fn needs_restart(before: &str, after: &str) -> Vec<&'static str> {
    check_text(before, &[]).unwrap().needs_restart(&check_text(after, &[]).unwrap())
}

#[test]
fn most_settings_need_no_restart() {
    let after = "[worker]\nlease = '1m'\ntypes = ['a']\n[retention]\ndead = 'off'\n[defaults]\nmemory = '1MiB'\nfuel = 'unlimited'\n\
                 [jobs.a]\nconcurrency = 1\n[queue]\nmax_payload = 1\n";
    assert_eq!(needs_restart("", after), Vec::<&str>::new());
}

#[test]
fn what_was_opened_at_the_start_needs_a_restart() {
    let after = "[queue]\ndatabase = 'x'\ntable = 'y'\ndurability = 'normal'\n[plugins]\ndir = 'p'\ncache_dir = 'c'\n";
    let keys = ["queue.database", "queue.table", "queue.durability", "plugins.dir", "plugins.cache_dir"];
    assert_eq!(needs_restart("", after), keys);
}

#[test]
fn the_pool_of_the_start_cannot_grow() {
    let (small, large) = ("[worker]\nconcurrency = 2\n", "[worker]\nconcurrency = 3\n[jobs.a]\nmemory = '256MiB'\n");
    assert_eq!(needs_restart(small, large), ["worker.concurrency", "memory"]);
    assert_eq!(needs_restart(large, small), Vec::<&str>::new());
}
