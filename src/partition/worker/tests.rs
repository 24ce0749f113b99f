//! What shares a batch, and what becomes of it on a full disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::partition::{Answer, Port, Reply, Vitals, reply};
use crate::store::Syncer;

#[derive(Debug)]
struct Told {
    what: What,
    reply: Reply<What>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    Write,
    Chore,
}

impl Command for Told {
    fn release(self) {
        self.reply.release();
    }

    fn refuse(self, refusal: Refusal) {
        self.reply.refuse(refusal);
    }

    fn is_chore(&self) -> bool {
        self.what == What::Chore
    }
}

/// Writes down which batches were committed.
#[derive(Debug, Default, Clone)]
struct Disk {
    full: Arc<AtomicBool>,
    committed: Arc<Mutex<Vec<Vec<What>>>>,
    deciding: Vec<What>,
}

impl Workload for Disk {
    type Command = Told;

    fn decide(&mut self, batch: &mut [Told], _now_ms: i64) -> Result<Decided, store::Error> {
        self.deciding = batch.iter().map(|told| told.what).collect();
        batch.iter_mut().for_each(|told| told.reply.set(told.what));
        Ok(Decided::Ready)
    }

    fn has_changed(&self) -> bool {
        self.deciding.iter().any(|what| *what != What::Read)
    }

    fn commit(&mut self, _now_ms: i64) -> Result<Durability, store::Error> {
        if self.has_changed() && self.full.load(Ordering::SeqCst) {
            return Err(store::Error::DiskFull("no room".to_owned()));
        }
        let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
        committed.push(std::mem::take(&mut self.deciding));
        Ok(Durability::AfterSync)
    }

    fn syncer(&self) -> Result<Box<dyn Syncer>, store::Error> {
        Ok(Box::new(NoSync))
    }

    fn rollback(&mut self) -> Result<(), store::Error> {
        self.deciding.clear();
        Ok(())
    }

    fn reopen(&mut self) -> Result<(), store::Error> {
        panic!("a full disk has not hurt the connection");
    }

    fn forget_idle(&mut self) {}

    fn vitals(&self) -> Vitals {
        Vitals::default()
    }

    fn come_to_rest(&mut self, _: i64) -> Result<(), store::Error> {
        Ok(())
    }
}

#[derive(Debug)]
struct NoSync;

impl Syncer for NoSync {
    fn sync(&mut self) -> Result<(), store::Error> {
        Ok(())
    }
}

/// A partition over such a disk whose batches gather until there are `crowd` commands.
fn partition_over(disk: &Disk, crowd: usize) -> Partition<Told> {
    let workers = Arc::new(crate::partition::Workers::default());
    workers.one_is_active();
    let limits = Limits {
        batch_max: 100,
        max_per_actor: 100,
        capacity: 100,
        actor_capacity: 100,
        gather: Gather { linger: Duration::from_secs(3_600), crowd, workers: Some(workers) },
        deadline: Duration::from_secs(3_600),
        idle_timeout: Duration::from_secs(3_600),
        reply_before_commit: false,
    };
    spawn(0, disk.clone(), limits, Clock::system(0, 0).unwrap()).unwrap()
}

fn ask(partition: &Partition<Told>, what: What) -> Answer<What> {
    let (reply, answer) = reply();
    partition.handle.push(crate::partition::ActorId(1), Told { what, reply }).unwrap();
    answer
}

async fn answers(partition: &Partition<Told>, batch: &[What]) -> Vec<Result<What, Refusal>> {
    let asked: Vec<_> = batch.iter().map(|what| ask(partition, *what)).collect();
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.within(Duration::from_secs(3_600)).await);
    }
    answers
}

#[tokio::test]
async fn a_chore_is_a_batch_of_its_own_after_the_others() {
    let disk = Disk::default();
    let partition = partition_over(&disk, 4);
    let batch = [What::Write, What::Chore, What::Read, What::Chore];
    assert_eq!(answers(&partition, &batch).await, batch.map(Ok));
    let committed = disk.committed.lock().unwrap().clone();
    assert_eq!(committed, [vec![What::Write, What::Read], vec![What::Chore], vec![What::Chore]]);
    partition.handle.close();
    partition.join().await;
}

#[tokio::test]
async fn on_a_full_disk_whatever_needs_no_room_is_answered() {
    let disk = Disk::default();
    let partition = partition_over(&disk, 5);
    disk.full.store(true, Ordering::SeqCst);
    let batch = [What::Read, What::Write, What::Chore, What::Read, What::Write];
    let full = Err(Refusal::DiskFull);
    assert_eq!(answers(&partition, &batch).await, [Ok(What::Read), full, full, Ok(What::Read), full]);
    assert!(partition.handle.is_up());
    disk.full.store(false, Ordering::SeqCst);
    assert_eq!(answers(&partition, &batch).await, batch.map(Ok));
    partition.handle.close();
    partition.join().await;
}
