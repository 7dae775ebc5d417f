import { expect, it } from "vitest";
import { createOutputStamper, messagesOf, stampedLine } from "./log-line.ts";
import { type LogSelection, selectLog } from "./select-log.ts";

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));
const time = (seconds: number) => `2026-01-01T00:00:0${seconds}.000000000Z`;
const long = "x".repeat(16 * 1024);

it("stamps each line of a stream, and keeps a long one, and one without an end, in parts", () => {
  const written: string[] = [];
  const stamper = createOutputStamper({ now: () => at(1) }, "stderr", (line) => written.push(String(line)));
  stamper.take(Buffer.from("a\n\nhal"));
  expect(written).toEqual([`${time(1)} stderr F a\n`, `${time(1)} stderr F \n`]);
  stamper.take(Buffer.from("f\n"));
  stamper.take(Buffer.from(`${long}y\n${long}\nrest`));
  stamper.end();
  stamper.end();
  expect(written.slice(2)).toEqual([
    `${time(1)} stderr F half\n`,
    `${time(1)} stderr P ${long}\n`,
    `${time(1)} stderr F y\n`,
    `${time(1)} stderr F ${long}\n`,
    `${time(1)} stderr P rest\n`,
  ]);
  expect(messagesOf(written.join(""))).toBe(`a\n\nhalf\n${long}y\n${long}\nrest`);
});

const stamped = Buffer.concat([
  stampedLine(at(1), "stdout", "a"),
  stampedLine(at(2), "stderr", "b", "P"),
  stampedLine(at(3), "stderr", "c"),
  stampedLine(at(4), "stdout", Buffer.from([0xff])),
]);
const last = (bytes: number[]) => Buffer.from(bytes).toString("latin1");

it.each<[string, LogSelection, Buffer | string, string]>([
  ["the messages alone", {}, stamped, `a\nbc\n${last([0xff])}\n`],
  [
    "with times, one for a message",
    { timestamps: true, limitBytes: 67 },
    stamped,
    `${time(1)} a\n${time(2)} bc\n`,
  ],
  ["since a time, itself included", { sinceMs: at(4).getTime() }, stamped, `${last([0xff])}\n`],
  [
    "so many bytes, times included",
    { timestamps: true, limitBytes: 34 },
    stamped,
    `${time(1)} a\n${time(2)[0]}`,
  ],
  ["no bytes", { limitBytes: 0 }, stamped, ""],
  [
    "a file of an earlier release",
    { timestamps: true, sinceMs: at(9).getTime() },
    "a\n2026 b\nc",
    "a\n2026 b\nc",
  ],
  ["a long line of an earlier release", {}, `${long.repeat(3)}\nb`, `${long.repeat(3)}\nb`],
])("%s", async (_name, selection, file, expected) => {
  for (const size of [7, 1000, 1_000_000]) {
    const bytes = Buffer.from(file);
    async function* chunks() {
      for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
    }
    let found = "";
    for await (const part of selectLog(chunks(), selection)) found += Buffer.from(part).toString("latin1");
    expect(found).toBe(expected);
  }
});
