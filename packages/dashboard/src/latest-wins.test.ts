import { expect, test } from "vitest";
import { latestWins } from "./latest-wins.ts";

/** A sink with room for so many texts until it is drained. */
function aSink(room: number) {
  const written: string[] = [];
  let left = room;
  let drained = () => {};
  return {
    written,
    write(text: string) {
      written.push(text);
      return --left > 0;
    },
    onDrain(listener: () => void) {
      drained = listener;
    },
    drain() {
      left = room;
      drained();
    },
  };
}

test("a watcher that keeps up sees every picture", () => {
  const sink = aSink(10);
  const writer = latestWins(sink);
  for (const text of ["a", "b", "c"]) writer.send(text);
  expect(sink.written).toEqual(["a", "b", "c"]);
  expect(writer.blocked).toBe(false);
});

test("a watcher that does not read costs one picture, and then sees the newest", () => {
  const sink = aSink(1);
  const writer = latestWins(sink);
  for (let i = 0; i < 1000; i++) writer.send(String(i));
  expect(sink.written).toEqual(["0"]);
  expect(writer.blocked).toBe(true);
  sink.drain();
  expect(sink.written).toEqual(["0", "999"]);
  sink.drain();
  expect(sink.written).toEqual(["0", "999"]);
  writer.send("next");
  expect(sink.written).toEqual(["0", "999", "next"]);
});
