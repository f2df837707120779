//! The whole store on a disk that loses power, fails and fills up: every row is compared with what must be there.

mod crash_points;
mod disk_faults;
mod full_disk;
mod machine;
mod mutations;
mod scenario;
