//! The handler of the job type `__name__`: doubles a number. Edit this file. jobq/jobq.zig has what it can call and return.

const std = @import("std");
const jobq = @import("jobq/jobq.zig");

/// The largest number that is accepted.
const max_n = 1_000_000;

/// The payload, parsed from JSON.
pub const Payload = struct {
    n: i64,
    service: Service = .up,
};

/// The state of the service that does the doubling.
pub const Service = enum { up, down, busy, closed };

/// The result, written as JSON.
pub const Result = struct {
    doubled: i64,
};

/// Runs one attempt. An error fails the attempt, with its name as the message.
pub fn handle(ctx: jobq.Context, payload: Payload) !jobq.Answer(Result) {
    // Another attempt wouldn't help: the job is dead at once. The same goes for a payload that can't be parsed.
    if (payload.n < 0 or payload.n > max_n) {
        return .fatal("`n` is {d}, which is not in 0 to {d}", .{ payload.n, max_n });
    }

    jobq.log(.info, "doubling {d}, attempt {d} of {d}", .{ payload.n, ctx.attempt, ctx.max_attempts });

    return switch (payload.service) {
        .up => .done(.{ .doubled = payload.n * 2 }),
        // The attempt fails, and the job runs again after the backoff of its type.
        .down => .retry("the service is down", .{}),
        // The attempt fails, and the job runs again after this delay, in milliseconds.
        .busy => .retryAfter(30_000, "the service is busy", .{}),
        // Not a failure: the job runs again after this delay, and the attempt isn't counted.
        .closed => .snooze(60_000),
    };
}

fn expectAnswer(expected: jobq.Text, json: []const u8) !void {
    const ctx = jobq.Context{ .attempt = 1, .max_attempts = 3 };
    try std.testing.expectEqualDeep(expected, jobq.run(handle, ctx, json));
}

test "doubles" {
    try expectAnswer(.{ .done = "{\"doubled\":4}" }, "{\"n\": 2}");
}

test "what cannot be doubled is fatal" {
    try expectAnswer(.{ .fatal = "`n` is -1, which is not in 0 to 1000000" }, "{\"n\": -1}");
    try expectAnswer(.{ .fatal = "bad payload: MissingField" }, "{}");
}

test "the service decides about the rest" {
    try expectAnswer(.{ .retry = "the service is down" }, "{\"n\": 2, \"service\": \"down\"}");
    const delayed: jobq.Text.Delayed = .{ .message = "the service is busy", .after_ms = 30_000 };
    try expectAnswer(.{ .retry_after = delayed }, "{\"n\": 2, \"service\": \"busy\"}");
    try expectAnswer(.{ .snooze = 60_000 }, "{\"n\": 2, \"service\": \"closed\"}");
}
