//! One hostile guest for each limit, next to a neighbour that must not be affected; and every kind of invalid file.

mod answers;
mod contract;
mod follow_ups;
mod fuel;
mod grants;
mod http;
mod load;
mod memory;
mod output;
mod programs;
mod secrets;
mod slots;
mod stop;
pub(crate) mod support;
mod time;
mod traces;
