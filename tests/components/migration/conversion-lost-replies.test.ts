/**
 * The answer to a write is lost: the write took effect, and the run does not know. Volume number n loses the answer to its n-th
 * write, all of them in one run, several at a time.
 */
import {
  interceptWrites,
  type KubeClient,
  type KubeObject,
  KubeTransportError,
  resources,
} from "@longshore/kube";
import { afterEach, expect, test } from "vitest";
import { type ConversionWorld, conversionWorld } from "./conversion-world.ts";

const worlds: ConversionWorld[] = [];
afterEach(async () => {
  for (const { plane } of worlds.splice(0)) await plane.stop();
});

/** How the run comes to know that an answer is lost. */
type Loss =
  /** The connection ends. */
  | "no answer"
  /** The client sends the same request again by itself, and gets the answer to that. */
  | "sent again";

/** What became of the writes of a run. */
interface Writes {
  /** Volumes that have lost an answer, with what was written. */
  readonly lost: Map<string, string>;
  /** How often each object of storage was made and deleted. */
  readonly made: Map<string, number>;
}

/** Volume `v3` loses the answer to the third write to its objects and its journal. */
function losing(kube: KubeClient, loss: Loss): Writes & { readonly kube: KubeClient } {
  const counts = new Map<string, number>();
  const lost = new Map<string, string>();
  const made = new Map<string, number>();
  const client = interceptWrites(kube, async ({ verb, resource, key = "" }, signal, send) => {
    const volume = /v(\d+)(-csi)?$/.exec(key);
    if (volume === null) return send(signal);
    const count = (counts.get(`v${volume[1]}`) ?? 0) + 1;
    counts.set(`v${volume[1]}`, count);
    const what = `${verb} ${resource.kind}`;
    const answer = await send(signal);
    if (resource.kind !== "ConfigMap" && verb !== "patch")
      made.set(`${what} ${key}`, (made.get(`${what} ${key}`) ?? 0) + 1);
    if (count !== Number(volume[1])) return answer;
    lost.set(`v${volume[1]}`, what);
    if (loss === "sent again") return send(signal);
    throw new KubeTransportError("the connection was closed before the answer came", { cause: undefined });
  });
  return { kube: client, lost, made };
}

const storageOf = ({ metadata }: KubeObject) => metadata?.name;

test.each<Loss>(["no answer", "sent again"])(
  "%s: no object is made or deleted twice, there and back",
  async (loss) => {
    const world = await conversionWorld();
    worlds.push(world);
    const { plane, pair, run, undo, claim, volume, cloud } = world;
    const names = Array.from({ length: writesOfVolume.back }, (_, at) => `v${at + 1}`);
    for (const name of names) await pair(name);

    const there = losing(plane.kube, loss);
    const converted = await run({ parallel: 4 }, there.kube);
    expect(converted.failed).toEqual([]);
    expect(converted.converted.map((each) => each.volume).sort()).toEqual(
      names.map((name) => `pv-${name}`).sort(),
    );
    expectAll(there, names, writesOfVolume.there, ["create ConfigMap"]);
    for (const name of names) {
      expect(await claim(name)).toMatchObject({
        spec: { volumeName: `pv-${name}-csi` },
        status: { phase: "Bound" },
      });
      expect(await volume(`pv-${name}`)).toBeUndefined();
      expect(await volume(`pv-${name}-csi`)).toMatchObject({
        spec: { persistentVolumeReclaimPolicy: "Delete", csi: { volumeHandle: `vol-${name}` } },
      });
    }

    const back = losing(plane.kube, loss);
    const undone = await undo({ parallel: 4 }, back.kube, plane.kube);
    expect(undone.failed).toEqual([]);
    expectAll(back, names, writesOfVolume.back, []);
    for (const name of names) {
      expect(await claim(name)).toMatchObject({
        spec: { volumeName: `pv-${name}` },
        status: { phase: "Bound" },
      });
      expect(await volume(`pv-${name}`)).toMatchObject({ spec: { persistentVolumeReclaimPolicy: "Delete" } });
    }
    const all = await plane.kube.list(resources.persistentVolumes, { signal: plane.signal });
    expect(all.items.map(storageOf).sort()).toEqual(names.map((name) => `pv-${name}`).sort());
    expect(cloud.calls).toEqual([]);
  },
);

/** Six of objects, and those of the journal: four there, and back one more, before the first step after the turn. */
const writesOfVolume = { there: 10, back: 11 };

/** Each of the first volumes, so many, has lost an answer, and among them those of every kind of write; nothing took effect twice. */
function expectAll(
  { lost, made }: Writes,
  names: readonly string[],
  losses: number,
  more: readonly string[],
): void {
  expect([...lost.keys()].sort()).toEqual(names.slice(0, losses).sort());
  expect(new Set(lost.values())).toEqual(
    new Set([
      ...more,
      "update ConfigMap",
      "patch PersistentVolume",
      "create PersistentVolume",
      "delete PersistentVolumeClaim",
      "create PersistentVolumeClaim",
      "delete PersistentVolume",
    ]),
  );
  expect([...made].filter(([, times]) => times !== 1)).toEqual([]);
  expect(made.size).toBe(4 * names.length);
}
