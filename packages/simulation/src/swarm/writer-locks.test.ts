import { expect, it } from "vitest";
import { WriterLocks } from "./writer-locks.ts";

it("lets one program after the other work on a file, and gives up waiting when it has to end", async () => {
  const locks = new WriterLocks();
  const { signal } = new AbortController();
  const given = new AbortController();
  const order: string[] = [];
  let end = () => {};
  const first = locks.alone("a", signal, async () => {
    order.push("first");
    await new Promise<void>((resolve) => {
      end = resolve;
    });
    order.push("first has ended");
    return 1;
  });
  const work = (name: string) => async () => order.push(name);
  const second = locks.alone("a", signal, work("second"));
  const third = locks.alone("a", given.signal, work("third"));
  await locks.alone("b", signal, work("of another file"));
  given.abort(new Error("the container ends"));
  await expect(third).rejects.toThrow("the container ends");
  end();
  await Promise.all([first, second]);
  expect(order).toEqual(["first", "of another file", "first has ended", "second"]);
});
