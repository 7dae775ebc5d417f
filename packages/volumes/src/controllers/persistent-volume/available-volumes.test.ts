/** The ordered index finds what a look at every volume would find, whatever changes. */
import { isDeleting, type PersistentVolume, type PersistentVolumeClaim, type Stored } from "@longshore/kube";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AvailableVolumes } from "./available-volumes.ts";
import { bestVolume, capacityOf, mismatch } from "./match-volume.ts";

const modes = [["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]];

const volumes = fc.record({
  name: fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h"),
  gibibytes: fc.integer({ min: 1, max: 4 }),
  modes: fc.constantFrom(...modes),
  className: fc.constantFrom("one", "two"),
  phase: fc.constantFrom("Available", "Available", "Available", "Bound"),
  isDeleting: fc.constantFrom(false, false, false, true),
  isClaimed: fc.constantFrom(false, false, false, true),
  isGone: fc.constantFrom(false, false, false, true),
});
type Given = typeof volumes extends fc.Arbitrary<infer V> ? V : never;

function volumeOf(given: Given): Stored<PersistentVolume> {
  return {
    metadata: {
      name: given.name,
      uid: given.name,
      resourceVersion: "1",
      ...(given.isDeleting ? { deletionTimestamp: "2026-01-01T00:00:00Z" } : {}),
    },
    spec: {
      capacity: { storage: `${given.gibibytes}Gi` },
      accessModes: given.modes,
      storageClassName: given.className,
      ...(given.isClaimed ? { claimRef: { name: "other" } } : {}),
    },
    status: { phase: given.phase as "Available" },
  };
}

function claimOf(storage: string, accessModes: string[] = ["ReadWriteOnce"]): PersistentVolumeClaim {
  return {
    metadata: { name: "claim", namespace: "default", uid: "claim-uid" },
    spec: { resources: { requests: { storage } }, accessModes, storageClassName: "one" },
  };
}

/** Rank of a volume by the rule: fewest access modes, then the smallest. */
const rank = (volume: PersistentVolume) =>
  (volume.spec?.accessModes ?? []).length * 100 + Number(capacityOf(volume).toBytes() / 1024n ** 3n);

test("the first that suits is the best of all that suit", () => {
  fc.assert(
    fc.property(
      fc.array(volumes, { maxLength: 40 }),
      fc.constantFrom("1Gi", "2Gi", "4Gi", "5Gi"),
      (changes, size) => {
        const index = new AvailableVolumes();
        const cache = new Map<string, Stored<PersistentVolume>>();
        const claim = claimOf(size);
        for (const change of changes) {
          const volume = volumeOf(change);
          if (change.isGone) {
            cache.delete(change.name);
            index.delete(change.name);
          } else {
            cache.set(change.name, volume);
            index.set(volume);
          }
          const suiting = [...cache.values()].filter(
            (one) =>
              one.spec?.claimRef === undefined &&
              one.status?.phase === "Available" &&
              !isDeleting(one) &&
              mismatch(one, claim) === undefined,
          );
          const found = bestVolume(claim, [], index.largeEnoughFor(claim));
          expect(found === undefined).toBe(suiting.length === 0);
          if (found === undefined) continue;
          expect(cache.get(found.metadata.name)).toBe(found);
          expect(rank(found)).toBe(Math.min(...suiting.map(rank)));
        }
      },
    ),
  );
});

test("of equal volumes the one that came first, also after a change that keeps its place", () => {
  const index = new AvailableVolumes();
  const equal = (name: "a" | "b", labels = {}) => {
    const volume = volumeOf({
      name,
      gibibytes: 2,
      modes: ["ReadWriteOnce"],
      className: "one",
      phase: "Available",
      isDeleting: false,
      isClaimed: false,
      isGone: false,
    });
    return { ...volume, metadata: { ...volume.metadata, labels } };
  };
  index.set(equal("b"));
  index.set(equal("a"));
  index.set(equal("b", { changed: "yes" }));
  const found = [...index.largeEnoughFor(claimOf("1Gi"))];
  expect(found.map(({ metadata }) => metadata.name)).toEqual(["b", "a"]);
  expect(found[0]?.metadata.labels).toEqual({ changed: "yes" });
});

test("a volume whose claimRef names the claim comes before all others", () => {
  const claim = claimOf("1Gi");
  const named = (claimRef: object, storage = "4Gi") => ({
    spec: { claimRef, capacity: { storage }, accessModes: ["ReadWriteOnce"], storageClassName: "one" },
  });
  const free = named({});
  const ref = { name: "claim", namespace: "default" };
  expect(bestVolume<PersistentVolume>(claim, [named(ref)], [free])).toEqual(named(ref));
  expect(bestVolume<PersistentVolume>(claim, [named({ ...ref, uid: "claim-uid" })], [free])).not.toBe(free);
  expect(bestVolume<PersistentVolume>(claim, [named({ ...ref, uid: "older" })], [free])).toBe(free);
  expect(bestVolume<PersistentVolume>(claim, [named(ref, "1Mi")], [free])).toBe(free);
});

test("labels that the claim selects", () => {
  const claim = claimOf("1Gi");
  const selecting = { ...claim, spec: { ...claim.spec, selector: { matchLabels: { disk: "fast" } } } };
  const labelled = (labels: Record<string, string>): PersistentVolume => ({
    metadata: { labels },
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], storageClassName: "one" },
  });
  const fast = labelled({ disk: "fast" });
  expect(bestVolume(selecting, [], [labelled({}), labelled({ disk: "slow" }), fast])).toBe(fast);
});
