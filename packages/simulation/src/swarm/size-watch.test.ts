import { describe, expect, it } from "vitest";
import { SizeWatch } from "./size-watch.ts";

describe("sizes", () => {
  const look = (...sizes: readonly { readonly disk: bigint; readonly claim: string }[]) => {
    const breaks: string[] = [];
    const watch = new SizeWatch((what) => breaks.push(what));
    for (const { disk, claim } of sizes) {
      watch.check({
        cloud: { disks: () => [{ id: "d", sizeBytes: disk }] } as never,
        objects: (({ plural }: { plural: string }) =>
          plural === "persistentvolumeclaims"
            ? [{ metadata: { uid: "c" }, status: { capacity: { storage: claim } } }]
            : []) as never,
      });
    }
    return breaks;
  };

  it("may stay and grow", () => {
    expect(look({ disk: 2n, claim: "1Ki" }, { disk: 2n, claim: "2Ki" }, { disk: 3n, claim: "2048" })).toEqual(
      [],
    );
  });

  it("never shrink", () => {
    expect(look({ disk: 2n, claim: "2Ki" }, { disk: 1n, claim: "1Ki" })).toEqual([
      "disk d has shrunk from 2 to 1 bytes",
      "claim c has shrunk from 2048 to 1024 bytes",
    ]);
  });
});
