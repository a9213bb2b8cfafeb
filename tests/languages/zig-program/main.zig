//! Does what no program should: {"do": "panic" | "loop" | "hog"}.

const std = @import("std");

pub fn main(init: std.process.Init) !void {
    var buffer: [4096]u8 = undefined;
    var stdin = std.Io.File.stdin().reader(init.io, &buffer);
    const payload = try stdin.interface.allocRemaining(init.gpa, .limited(1 << 20));
    if (std.mem.indexOf(u8, payload, "panic") != null) @panic("hostile to the end");
    while (std.mem.indexOf(u8, payload, "hog") != null) {
        const more = try init.gpa.alloc(u8, 1 << 20);
        @memset(more, 1);
        std.mem.doNotOptimizeAway(more.ptr);
    }
    while (true) std.mem.doNotOptimizeAway(payload.ptr);
}
