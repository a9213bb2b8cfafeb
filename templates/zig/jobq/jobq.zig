//! What a handler can call and return. In native tests, log lines are printed, and there is no other host.

const std = @import("std");
const builtin = @import("builtin");
const host = @import("host.zig");

/// Whether this is a WebAssembly build, which has a host.
const guest = builtin.cpu.arch.isWasm();

/// Each attempt has its own instance, so nothing needs to be freed.
pub const allocator: std.mem.Allocator = if (guest) std.heap.wasm_allocator else std.heap.page_allocator;

/// The running attempt.
pub const Context = struct {
    /// The same in every attempt of a job; use it as an idempotency key.
    job_id: []const u8 = "0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10",
    job_type: []const u8 = "__name__",
    /// The first is 1.
    attempt: u32,
    max_attempts: u32,

    /// The time left before the host stops this attempt, in milliseconds.
    pub fn remainingMs(_: Context) u64 {
        return if (guest) host.remainingMs() else std.math.maxInt(u64);
    }

    /// Whether this job was cancelled.
    pub fn isCancelled(_: Context) bool {
        return guest and host.isCancelled();
    }

    /// Reports the progress: a percentage from 0 to 100 and a short message.
    pub fn progress(_: Context, percent: u8, message: []const u8) void {
        if (guest) host.progress(percent, message);
    }

    /// Enqueues a job when this attempt completes; if it doesn't, nothing is enqueued. Returns the id.
    pub fn enqueue(_: Context, job: FollowUp) Enqueued {
        return if (guest) host.enqueue(job) else .{ .id = "follow-up" };
    }
};

/// A follow-up job. Fields that are null take the defaults of its type.
pub const FollowUp = struct {
    job_type: []const u8,
    /// JSON text, such as `json` returns.
    payload: []const u8,
    priority: ?i32 = null,
    delay_ms: ?u64 = null,
    max_attempts: ?u32 = null,
    /// At most one unfinished job may have this key.
    unique_key: ?[]const u8 = null,
};

pub const Enqueued = union(enum) {
    id: []const u8,
    /// The job type doesn't exist, or the payload isn't JSON.
    invalid: []const u8,
    /// jobq.toml doesn't allow this job type to enqueue that one.
    denied: []const u8,
};

pub const Level = enum(u8) { debug, info, warn, err };

/// Writes a log line; `jobq logs ID` shows it.
pub fn log(level: Level, comptime format: []const u8, args: anytype) void {
    if (guest) host.write(level, text(format, args)) else std.debug.print(format ++ "\n", args);
}

/// What happens to the job, with a result of the handler's own type.
pub fn Answer(comptime Result: type) type {
    return union(enum) {
        result: Result,
        other: Text,

        const Self = @This();

        /// The job is completed.
        pub fn done(result: Result) Self {
            return .{ .result = result };
        }

        /// The attempt fails, and the job runs again after the backoff of its type.
        pub fn retry(comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .retry = text(format, args) } };
        }

        /// The attempt fails, and the job runs again after this delay.
        pub fn retryAfter(after_ms: u64, comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .retry_after = .{ .message = text(format, args), .after_ms = after_ms } } };
        }

        /// The job is dead at once.
        pub fn fatal(comptime format: []const u8, args: anytype) Self {
            return .{ .other = .{ .fatal = text(format, args) } };
        }

        /// Not a failure: the job runs again after this delay, and the attempt isn't counted.
        pub fn snooze(after_ms: u64) Self {
            return .{ .other = .{ .snooze = after_ms } };
        }
    };
}

/// An answer for the host, with the result as JSON text.
pub const Text = union(enum) {
    done: []const u8,
    retry: []const u8,
    retry_after: Delayed,
    fatal: []const u8,
    snooze: u64,

    pub const Delayed = struct { message: []const u8, after_ms: u64 };
};

/// Runs a handler as the host does, with a payload and a result in JSON.
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
