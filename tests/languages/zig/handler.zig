//! Does what no handler should: {"do": "panic" | "loop" | "hog" | "follow", "type"}.

const std = @import("std");
const jobq = @import("jobq/jobq.zig");

pub const Payload = struct {
    do: enum { panic, loop, hog, follow },
    type: []const u8 = "",
};

pub const Result = struct {
    id: []const u8,
};

pub fn handle(ctx: jobq.Context, payload: Payload) !jobq.Answer(Result) {
    switch (payload.do) {
        .panic => @panic("hostile to the end"),
        .loop => while (true) std.mem.doNotOptimizeAway(ctx.attempt),
        .hog => while (true) {
            const more = try jobq.allocator.alloc(u8, 1 << 20);
            @memset(more, 1);
            std.mem.doNotOptimizeAway(more.ptr);
        },
        .follow => {
            const job: jobq.FollowUp = .{ .job_type = payload.type, .payload = jobq.json(.{ .n = 21 }) };
            return switch (ctx.enqueue(job)) {
                .id => |id| .done(.{ .id = id }),
                .invalid, .denied => |why| .fatal("{s}", .{why}),
            };
        },
    }
}
