//! Makes a function the handler of a component.

use crate::context::Context;
use crate::error::{Error, Result};
use crate::json::{FromJson, ToJson};

/// Makes a function the handler of this component: `handler!(hello);`. Use it once per crate.
///
/// The function takes the payload and the [`Context`](crate::Context) and returns a [`Result`](crate::Result):
///
/// ```
/// # use jobq_guest::{Context, Result};
/// fn hello(name: String, ctx: &Context) -> Result<()> {
///     jobq_guest::log::info!("hello {name}, this is job {}", ctx.job_id());
///     Ok(())
/// }
///
/// jobq_guest::handler!(hello);
/// # fn main() {}
/// ```
///
/// The payload must implement [`FromJson`](crate::FromJson):
///
/// ```compile_fail,E0277
/// # use jobq_guest::{Context, Result};
/// struct Payload;
///
/// fn hello(_: Payload, _: &Context) -> Result<()> {
///     Ok(())
/// }
///
/// jobq_guest::handler!(hello);
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! handler {
    ($function:path) => {
        const _: () = {
            // In native builds nothing calls the function. This checks its type and prevents a warning about dead code.
            #[cfg(not(target_arch = "wasm32"))]
            const _: fn() = || $crate::__private::check($function);

            #[cfg(target_arch = "wasm32")]
            struct Handler;

            #[cfg(target_arch = "wasm32")]
            impl $crate::__private::Guest for Handler {
                fn handle(
                    job: $crate::__private::Job,
                ) -> ::core::result::Result<::std::string::String, $crate::__private::JobError> {
                    $crate::__private::handle($function, job, ::core::module_path!())
                }
            }

            #[cfg(target_arch = "wasm32")]
    $crate::__private::export_handler!(Handler with_types_in $crate::__private::bindings);
        };
    };
}

/// Checks at compile time that a function can be a handler.
pub fn check<P: FromJson, A: ToJson>(_: fn(P, &Context) -> Result<A>) {}

/// Runs one attempt: parses the payload, calls the function, serializes its result.
pub(crate) fn attempt<P: FromJson, A: ToJson>(
    function: impl Fn(P, &Context) -> Result<A>,
    ctx: &Context,
) -> Result<String> {
    let payload = P::from_json(ctx.payload()).map_err(|error| Error::Fatal(format!("bad payload{error}")))?;
    let result = function(payload, ctx)?;
    result.to_json().map_err(|error| Error::Fatal(format!("failed to serialize the result as JSON: {error}")))
}
