//! The store has no room: what is new is refused, and what runs comes to its end.

use super::script::check;

#[test]
fn a_full_store_refuses_what_is_new_and_takes_what_ends() {
    check(
        "
        0   accept a due=1
        2   hold_store records
        2   succeed a
        2   accept b due=9
        2   fill_store
        2   let_store
        3   accept c due=9
        4   empty_store
        4   accept d due=9
        9   succeed d
        ",
        "
        1 start a #1
        2 finish a
        2 answer accept b: full
        3 answer accept c: full
        9 start d #1
        9 finish d
        ",
    );
}

#[test]
fn what_was_refused_can_be_asked_for_again_under_its_key() {
    check(
        "
        0   fill_store
        0   accept a key=k due=5
        1   empty_store
        1   accept b key=k due=5
        5   succeed b
        ",
        "
        0 answer accept a: full
        5 start b #1
        5 finish b
        ",
    );
}
