//! The job type `__name__`: doubles a number.
//!
//! An ordinary program: the payload is on stdin, the result goes to stdout, and exit status 0
//! means success. With any other status, the job runs again later, and the end of stderr is the error message.

const std = @import("std");
const double = @import("double.zig");

pub fn main(init: std.process.Init) !void {
    const arena = init.arena.allocator();
    var buffer: [4096]u8 = undefined;
    var stdin = std.Io.File.stdin().reader(init.io, &buffer);
    const payload = try stdin.interface.allocRemaining(arena, .limited(1 << 20));

    switch (try double.run(arena, payload)) {
        .result => |json| try std.Io.File.stdout().writeStreamingAll(init.io, json),
        .problem => |why| {
            std.debug.print("{s}\n", .{why});
            std.process.exit(1);
        },
    }
}
