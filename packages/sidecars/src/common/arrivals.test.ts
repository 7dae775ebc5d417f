import type { ConfigMap, Informer, InformerHandler, Stored } from "@longshore/kube";
import { expect, it } from "vitest";
import { arrivals } from "./arrivals.ts";

const object = (name: string, uid = "u") =>
  ({ metadata: { name, uid, resourceVersion: "1" } }) as Stored<ConfigMap>;

function subscribed(listed: readonly Stored<ConfigMap>[]) {
  let handler: InformerHandler<ConfigMap> = {};
  const informer = {
    onChange(given: InformerHandler<ConfigMap>) {
      handler = given;
      for (const each of listed) given.added?.(each, { initial: true });
      return () => {};
    },
  } as Informer<ConfigMap>;
  const woken: string[] = [];
  const wake = (key: string, priority = "fresh") => woken.push(`${key} ${priority}`);
  const source = arrivals(
    informer,
    ({ metadata }) => [`for/${metadata.name}`],
    (before, after) => before.metadata.uid !== after.metadata.uid,
  );
  source.subscribe({ wake, forget: () => {} });
  return { handler, woken };
}

it("what is in the cache at the start wakes nothing", () => {
  expect(subscribed([object("a")]).woken).toEqual([]);
});

it("what arrives later wakes, also when a list brings it after the watch has missed it", () => {
  const { handler, woken } = subscribed([]);
  handler.added?.(object("a"), { initial: false });
  handler.added?.(object("b"), { initial: true });
  expect(woken).toEqual(["for/a fresh", "for/b background"]);
});

it("of changes those wake that are selected", () => {
  const { handler, woken } = subscribed([]);
  handler.updated?.(object("a"), object("a"));
  handler.updated?.(object("a"), object("a", "v"));
  handler.deleted?.(object("a"), { tombstone: false });
  expect(woken).toEqual(["for/a fresh"]);
});
