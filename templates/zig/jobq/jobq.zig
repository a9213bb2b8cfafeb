//! What a handler is given and what it may answer. Natively, a log line is printed and the rest of the host is not there.

const std = @import("std");
const builtin = @import("builtin");
const host = @import("host.zig");

/// Whether there is a host.
const guest = builtin.cpu.arch.isWasm();

/// An attempt has an instance of its own, which is thrown away after it: nothing is ever freed.
pub const allocator: std.mem.Allocator = if (guest) std.heap.wasm_allocator else std.heap.page_allocator;

/// The attempt that is running.
pub const Context = struct {
    /// The same in every attempt of the job, so it can serve as an idempotency key.
    job_id: []const u8 = "0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10",
    job_type: []const u8 = "__name__",
    /// The first is 1.
    attempt: u32,
    max_attempts: u32,

    /// Milliseconds left before this attempt is stopped.
    pub fn remainingMs(_: Context) u64 {
        return if (guest) host.remainingMs() else std.math.maxInt(u64);
    }

    /// Whether somebody asked for this job to be cancelled.
    pub fn isCancelled(_: Context) bool {
        return guest and host.isCancelled();
    }

    /// Shows how far the attempt has come: 0 to 100 and a few words.
    pub fn progress(_: Context, percent: u8, message: []const u8) void {
        if (guest) host.progress(percent, message);
    }

    /// Adds a job that comes into being when this attempt completes, or not at all. Returns its id.
    pub fn enqueue(_: Context, job: FollowUp) Enqueued {
        return if (guest) host.enqueue(job) else .{ .id = "follow-up" };
    }
};

/// A job to be added. What is null is as the job type says.
pub const FollowUp = struct {
    job_type: []const u8,
    /// JSON text, as `json` makes it.
    payload: []const u8,
    priority: ?i32 = null,
    delay_ms: ?u64 = null,
    max_attempts: ?u32 = null,
    /// At most one unfinished job holds it.
    unique_key: ?[]const u8 = null,
};

pub const Enqueued = union(enum) {
    id: []const u8,
    /// The job type does not exist, or the payload is not JSON.
    invalid: []const u8,
    /// jobq.toml does not allow this job type to enqueue that one.
    denied: []const u8,
};

pub const Level = enum(u8) { debug, info, warn, err };

/// A line that `jobq logs ID` shows.
pub fn log(level: Level, comptime format: []const u8, args: anytype) void {
    if (guest) host.write(level, text(format, args)) else std.debug.print(format ++ "\n", args);
}

/// What becomes of the job, with the result as the handler's own type.
pub fn Answer(comptime Result: type) type {
    return union(enum) {
        result: Result,
        other: Text,

        const Self = @This();

        /// Completed.
        pub fn done(result: Result) Self {
            return .{ .result = result };
        }

        /// Failed: another attempt after the backoff of the job type.
        pub fn retry(comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .retry = text(format, args) } };
        }

        /// Failed: another attempt after this delay.
        pub fn retryAfter(after_ms: u64, comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .retry_after = .{ .message = text(format, args), .after_ms = after_ms } } };
        }

        /// Failed for good: the job is dead at once.
        pub fn fatal(comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .fatal = text(format, args) } };
        }

        /// Not failed, not yet: runs again after this delay. Not counted as an attempt.
        pub fn snooze(after_ms: u64) Self {
            return .{ .other = .{ .snooze = after_ms } };
        }
    };
}

/// An answer with the result as JSON text, as it goes to the host.
pub const Text = union(enum) {
    done: []const u8,
    retry: []const u8,
    retry_after: Delayed,
    fatal: []const u8,
    snooze: u64,

    pub const Delayed = struct { message: []const u8, after_ms: u64 };
};

/// Runs a handler as the host does: from the JSON of the payload to the JSON of the result.
pub fn run(comptime handle: anytype, ctx: Context, payload: []const u8) Text {
    const Payload = @typeInfo(@TypeOf(handle)).@"fn".param_types[1].?;
    const options: std.json.ParseOptions = .{ .ignore_unknown_fields = true };
    const parsed = std.json.parseFromSliceLeaky(Payload, allocator, payload, options) catch |err|
        return .{ .fatal = text("bad payload: {s}", .{@errorName(err)}) };
    const answer = handle(ctx, parsed) catch |err| return .{ .retry = @errorName(err) };
    return switch (answer) {
        .result => |result| .{ .done = json(result) },
        .other => |other| other,
    };
}

/// The JSON text of a value.
pub fn json(value: anytype) []const u8 {
    return std.json.Stringify.valueAlloc(allocator, value, .{}) catch @panic("out of memory");
}

fn text(comptime format: []const u8, args: anytype) []const u8 {
    return std.fmt.allocPrint(allocator, format, args) catch @panic("out of memory");
}
