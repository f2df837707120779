//! A journal that was right and was spoiled: it is refused, or cut where it can be cut, and never read as another one.

use super::machine::{Machine, rows_of};
use super::scenario::Scenario;
use crate::embedded::frame::Sequence;
use crate::embedded::journal;
use crate::embedded::layer::Layer;
use crate::embedded::ops;
use crate::mutation::{rounds, spoil};

const SECTOR: usize = 512;

/// Every record of a life, in order.
async fn records(scenario: &Scenario) -> Vec<Vec<u8>> {
    let machine = Machine::new(1);
    // Nothing goes down, so that the journal holds everything.
    machine.cold.set_full(true);
    let store = machine.open().await.expect("it opens");
    scenario.go_on(&store, 0).await.ok();
    drop(store);
    let mut found = Vec::new();
    let read = journal::inspect(&machine.disk, Sequence(1), |_, records| {
        found.extend(records.map(<[u8]>::to_vec));
        Ok(())
    });
    read.expect("it can be read");
    found
}

#[tokio::test]
async fn a_spoiled_record_is_refused_or_does_no_harm() {
    let mut all = Vec::new();
    for seed in 0..3 {
        all.extend(records(&Scenario::new(seed).await).await);
    }
    assert!(all.len() > 20, "{} records", all.len());
    let (mut taken, mut refused) = (0, 0);
    let mut layer = Layer::default();
    for (number, mut dice) in rounds(3_000).enumerate() {
        let record = &all[number % all.len()];
        if number % all.len() == 0 {
            layer = Layer::default();
        }
        let other = &all[dice.below(all.len() as u64) as usize];
        match ops::replay(&spoil(&mut dice, record, other), &mut layer, |_| {}) {
            Some(()) => taken += 1,
            None => refused += 1,
        }
        // The true one comes after it, so that those behind it find what they build on.
        ops::replay(record, &mut layer, |_| {});
        if number % 50 == 0 {
            layer.slice(&[], &[255], 100);
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}

/// Spoils a place of a segment: a byte, or a whole sector by another one.
fn damage(machine: &Machine, dice: &mut crate::dice::Dice) {
    let segments: Vec<String> = (1..20).map(|number| format!("segment-{number:06}")).collect();
    let all = segments
        .iter()
        .chain(std::iter::once(&segments[0]))
        .filter_map(|name| machine.disk.contents(name).map(|contents| (name.clone(), contents)));
    let all: Vec<(String, Vec<u8>)> = all.collect();
    // Where frames lie, rather than in zeros.
    let written: Vec<(usize, usize)> = (all.iter().enumerate())
        .flat_map(|(file, (_, contents))| {
            let sectors = contents.chunks(SECTOR).enumerate();
            let written = sectors.filter(|(_, sector)| sector.iter().any(|byte| *byte != 0));
            written.map(move |(sector, _)| (file, sector)).collect::<Vec<_>>()
        })
        .collect();
    let [(file, sector), (other_file, other)] = [(); 2].map(|()| *dice.pick(&written).expect("frames"));
    let name = &all[file].0;
    if dice.chance(500) {
        machine.disk.flip(name, sector * SECTOR + dice.below(SECTOR as u64) as usize, 1 << dice.below(8));
        return;
    }
    for byte in 0..SECTOR {
        let (is, becomes) = (all[file].1[sector * SECTOR + byte], all[other_file].1[other * SECTOR + byte]);
        machine.disk.flip(name, sector * SECTOR + byte, is ^ becomes);
    }
}

#[tokio::test]
async fn a_damaged_journal_is_refused_or_cut_and_never_read_as_another() {
    let scenario = Scenario::new(1).await;
    let (mut refused, mut unharmed, mut cut) = (0, 0, 0);
    for mut dice in rounds(400) {
        let machine = Machine::new(dice.roll());
        let steps = 1 + dice.below(scenario.steps.len() as u64 - 1) as usize;
        let store = machine.open().await.expect("it opens");
        for step in &scenario.steps[..steps] {
            step.take(&store).await;
        }
        let before = rows_of(&store).await;
        drop(store);
        damage(&machine, &mut dice);
        match machine.open().await {
            Err(_) => refused += 1,
            Ok(store) => {
                let rows = rows_of(&store).await;
                // The last frame, of up to three writes, cannot be told from one that was never finished.
                let may_be = scenario.states_before(&before, 3);
                assert!(may_be.contains(&&rows), "after {steps} steps something else is read");
                if rows == before { unharmed += 1 } else { cut += 1 }
            }
        }
    }
    assert!(refused > 50 && unharmed > 10 && cut > 0, "{refused} refused, {unharmed} unharmed, {cut} cut");
}
