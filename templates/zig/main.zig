//! Connects handler.zig to the host, according to the canonical ABI of components. The entry point of the build.

const std = @import("std");
const handler = @import("handler.zig");
const jobq = @import("jobq/jobq.zig");

/// `result<string, job-error>`.
const Answer = extern struct {
    failed: bool,
    as: extern union {
        result: String,
        err: extern struct {
            case: enum(u8) { retry, retry_after, fatal, snooze },
            with: extern union {
                message: String,
                delayed: extern struct { message: String, after_ms: u64 },
                after_ms: u64,
            },
        },
    },
};

const String = extern struct {
    ptr: [*]const u8,
    len: usize,

    fn of(text: []const u8) String {
        return .{ .ptr = text.ptr, .len = text.len };
    }
};

var answer: Answer = undefined;

fn handle(
    id: [*]const u8,
    id_len: usize,
    job_type: [*]const u8,
    job_type_len: usize,
    payload: [*]const u8,
    payload_len: usize,
    attempt: u32,
    max_attempts: u32,
) callconv(.c) *const Answer {
    const ctx = jobq.Context{
        .job_id = id[0..id_len],
        .job_type = job_type[0..job_type_len],
        .attempt = attempt,
        .max_attempts = max_attempts,
    };
    answer = switch (jobq.run(handler.handle, ctx, payload[0..payload_len])) {
        .done => |json| .{ .failed = false, .as = .{ .result = .of(json) } },
        .retry => |message| err(.{ .case = .retry, .with = .{ .message = .of(message) } }),
        .retry_after => |delayed| err(.{ .case = .retry_after, .with = .{
            .delayed = .{ .message = .of(delayed.message), .after_ms = delayed.after_ms },
        } }),
        .fatal => |message| err(.{ .case = .fatal, .with = .{ .message = .of(message) } }),
        .snooze => |after_ms| err(.{ .case = .snooze, .with = .{ .after_ms = after_ms } }),
    };
    return &answer;
}

fn err(value: @FieldType(@FieldType(Answer, "as"), "err")) Answer {
    return .{ .failed = true, .as = .{ .err = value } };
}

/// The host allocates memory for the values it passes.
fn realloc(old: ?[*]u8, old_len: usize, alignment: usize, len: usize) callconv(.c) ?[*]u8 {
    const log2: std.mem.Alignment = .fromByteUnits(alignment);
    if (old) |ptr| if (old_len > 0) {
        const new = jobq.allocator.rawAlloc(len, log2, @returnAddress()) orelse @panic("out of memory");
        @memcpy(new[0..@min(old_len, len)], ptr[0..@min(old_len, len)]);
        return new;
    };
    return jobq.allocator.rawAlloc(len, log2, @returnAddress()) orelse @panic("out of memory");
}

comptime {
    @export(&handle, .{ .name = "jobq:handler/handler@0.1.0#handle" });
    @export(&realloc, .{ .name = "cabi_realloc" });
}
