"""Does what no handler should: {"do": "panic" | "throw" | "loop" | "hog" | "follow", "type"}."""

from dataclasses import dataclass

from jobq import Context, Fatal, FollowUp


@dataclass
class Payload:
    do: str
    type: str = ""


def handle(payload: Payload, ctx: Context) -> dict:
    match payload.do:
        case "panic":
            raise ValueError("hostile to the end")
        case "throw":
            raise Exception("a mere text")
        case "loop":
            while True:
                pass
        case "hog":
            hoard = []
            while True:
                hoard.append(bytearray(1 << 20))
        case "follow":
            return {"id": ctx.enqueue(FollowUp(payload.type, {"n": 21}))}
    raise Fatal("no such deed")
