//! One hostile guest for each limit, each beside a neighbour that must not notice; and every kind of file that is no guest.

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
