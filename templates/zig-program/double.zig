//! The work of the job type `__name__`. Edit this file.

const std = @import("std");

/// The largest number that is accepted.
const max_n = 1_000_000;

/// The payload, parsed from JSON.
const Payload = struct {
    n: i64,
    /// The state of the service that does the doubling.
    service: enum { up, down } = .up,
};

pub const Answer = union(enum) {
    /// JSON text.
    result: []const u8,
    problem: []const u8,
};

pub fn run(arena: std.mem.Allocator, json: []const u8) !Answer {
    const options: std.json.ParseOptions = .{ .ignore_unknown_fields = true };
    const payload = std.json.parseFromSliceLeaky(Payload, arena, json, options) catch |err|
        return .{ .problem = try std.fmt.allocPrint(arena, "bad payload: {s}", .{@errorName(err)}) };
    if (payload.n < 0 or payload.n > max_n) {
        const problem = "`n` is {d}, which is not in 0 to {d}";
        return .{ .problem = try std.fmt.allocPrint(arena, problem, .{ payload.n, max_n }) };
    }
    // `jobq logs ID` shows what is written to stderr.
    std.debug.print("doubling {d}\n", .{payload.n});
    return switch (payload.service) {
        .up => .{ .result = try std.json.Stringify.valueAlloc(arena, .{ .doubled = payload.n * 2 }, .{}) },
        .down => .{ .problem = "the service is down" },
    };
}

test run {
    var arena: std.heap.ArenaAllocator = .init(std.testing.allocator);
    defer arena.deinit();
    for ([_]struct { []const u8, Answer }{
        .{ "{\"n\": 2}", .{ .result = "{\"doubled\":4}" } },
        .{ "{\"n\": -1}", .{ .problem = "`n` is -1, which is not in 0 to 1000000" } },
        .{ "{\"n\": 2, \"service\": \"down\"}", .{ .problem = "the service is down" } },
        .{ "{}", .{ .problem = "bad payload: MissingField" } },
    }) |case| {
        try std.testing.expectEqualDeep(case[1], try run(arena.allocator(), case[0]));
    }
}
