//! The functions of wit/handler.wit that a handler calls, in the layout of the canonical ABI.

const std = @import("std");
const jobq = @import("jobq.zig");

pub fn write(level: jobq.Level, line: []const u8) void {
    @extern(*const fn (u32, [*]const u8, usize) callconv(.c) void, .{
        .name = "write",
        .library_name = "jobq:handler/log@0.1.0",
    })(@intFromEnum(level), line.ptr, line.len);
}

pub fn remainingMs() u64 {
    return @extern(*const fn () callconv(.c) u64, .{
        .name = "remaining-ms",
        .library_name = context,
    })();
}

pub fn isCancelled() bool {
    return @extern(*const fn () callconv(.c) u32, .{
        .name = "is-cancelled",
        .library_name = context,
    })() != 0;
}

pub fn progress(percent: u8, message: []const u8) void {
    @extern(*const fn (u32, [*]const u8, usize) callconv(.c) void, .{
        .name = "progress",
        .library_name = context,
    })(percent, message.ptr, message.len);
}

const context = "jobq:handler/context@0.1.0";

/// The fields of `new-job`, with each option as a flag and a value, and the address of the result.
const Enqueue = fn (
    [*]const u8,
    usize,
    [*]const u8,
    usize,
    u32,
    i32,
    u32,
    u64,
    u32,
    u32,
    u32,
    [*]const u8,
    usize,
    *Enqueued,
) callconv(.c) void;

/// `result<string, enqueue-error>`.
const Enqueued = extern struct {
    failed: bool,
    as: extern union {
        id: String,
        err: extern struct { case: u8, why: String },
    },
};

const String = extern struct {
    ptr: [*]const u8,
    len: usize,

    fn slice(string: String) []const u8 {
        return string.ptr[0..string.len];
    }
};

pub fn enqueue(job: jobq.FollowUp) jobq.Enqueued {
    const key = job.unique_key orelse "";
    var answer: Enqueued = undefined;
    @extern(*const Enqueue, .{ .name = "enqueue", .library_name = "jobq:handler/queue@0.1.0" })(
        job.job_type.ptr,
        job.job_type.len,
        job.payload.ptr,
        job.payload.len,
        @intFromBool(job.priority != null),
        job.priority orelse 0,
        @intFromBool(job.delay_ms != null),
        job.delay_ms orelse 0,
        @intFromBool(job.max_attempts != null),
        job.max_attempts orelse 0,
        @intFromBool(job.unique_key != null),
        key.ptr,
        key.len,
        &answer,
    );
    if (!answer.failed) return .{ .id = answer.as.id.slice() };
    const why = answer.as.err.why.slice();
    return if (answer.as.err.case == 0) .{ .invalid = why } else .{ .denied = why };
}
