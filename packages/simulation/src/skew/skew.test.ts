/** Version skew on the smallest cluster; the `*.exhaustive.test.ts` beside have two plugins on two nodes. */
import { describe, expect, it } from "vitest";
import { combinationBreaks, isAsPromised, isStoryAsPromised, orderLines } from "./describe-skew.ts";
import { exploreSkew } from "./explore-skew.ts";
import { flipWords, possibleFlips, tourOfFlips, uniformGates } from "./flip.ts";
import { orderCount, orderNumbered, replay } from "./replay-orders.ts";
import { ordersOf } from "./skew-orders.ts";
import { combinationsOf, playCombination } from "./skew-table.ts";
import { playVersions } from "./skew-versions.ts";
import { SkewWorld } from "./skew-world.ts";

const plugins = ["aws-ebs"] as const;

// A few seconds each on a machine that has nothing else to do.
const timeout = 180_000;

describe("orders on one node", { timeout }, () => {
  it("are all safe where the node alone decides (migration-controllers.md B2)", async () => {
    const graph = await exploreSkew({ plugins, nodes: 1, mode: "node-only" });
    expect(graph.violations).toEqual([]);
    expect(ordersOf(graph)).toEqual({
      counts: [
        { direction: "on", orders: 4, safe: 4 },
        { direction: "off", orders: 4, safe: 4 },
      ],
      unsafe: [],
    });
    expect(orderLines(graph)).toContain("all gates on: 4/4 orders keep all work going");
  });

  it("are unsafe upstream where a kubelet is on and the controller manager is not, and lose nothing (migration-controllers.md C3)", async () => {
    const options = { plugins, nodes: 1, mode: "upstream" } as const;
    const graph = await exploreSkew(options);
    expect(graph.violations).toEqual([]);
    const { counts, unsafe } = ordersOf(graph);
    expect(counts.map(({ safe, orders }) => `${safe}/${orders}`)).toEqual(["2/4", "2/4"]);
    expect(
      unsafe.map(({ reason, orders, story, remedy }) => [
        reason,
        orders,
        story.map(flipWords),
        remedy && flipWords(remedy),
      ]),
    ).toEqual([
      [
        "a kubelet is on before the controller manager: pod does not start",
        2,
        ["node-1, drained: aws-ebs on"],
        "controller manager: aws-ebs on",
      ],
      [
        "the controller manager is off before a kubelet: pod does not start",
        2,
        ["controller manager: aws-ebs off"],
        "node-1, drained: aws-ebs off",
      ],
    ]);
    // Unsafe orders are no surprise upstream; where the node alone decides they would be.
    expect(isAsPromised(graph)).toBe(true);
    expect(isAsPromised({ ...graph, options: { ...options, mode: "node-only" } })).toBe(false);
    expect(isAsPromised({ ...graph, violations: ["C3: lost"] })).toBe(false);
    // The story on a cluster of its own, and its end.
    const [first] = unsafe;
    const again = await replay(options, [...(first?.story ?? []), ...(first?.remedy ? [first.remedy] : [])]);
    expect(again.violations).toEqual([]);
    expect(again.steps.map(({ stalls }) => stalls.map(({ warning }) => warning))).toEqual([
      [expect.stringContaining("its migration to ebs.csi.aws.com is not enabled in the controller")],
      [],
    ]);
  });
});

it.each(["upstream", "node-only"] as const)(
  "%s: the four combinations of gates (migration-controllers.md C3)",
  async (mode) => {
    for (const combination of combinationsOf("aws-ebs", mode)) {
      expect(combinationBreaks(combination, await playCombination(combination))).toEqual([]);
    }
  },
);

it("upgrade, downgrade in the order of the cluster-version operator, and upgrade again (migration-controllers.md B1)", {
  timeout,
}, async () => {
  const story = { plugins, minor: 23, behind: 1, downgrade: "controller manager first" } as const;
  const safe = await playVersions({ ...story, mode: "node-only" });
  expect(safe.violations).toEqual([]);
  expect(safe.steps.filter(({ stalls }) => stalls.length > 0)).toEqual([]);
  const unsafe = await playVersions({ ...story, mode: "upstream" });
  expect(unsafe.violations).toEqual([]);
  expect([isStoryAsPromised(unsafe, true), isStoryAsPromised(unsafe, false)]).toEqual([true, false]);
  expect(unsafe.steps.filter(({ stalls }) => stalls.length > 0).map(({ words }) => words)).toEqual([
    "downgrade: controller manager: 1.23 to 1.22",
    "downgrade: node-1, drained: 1.23 to 1.22",
  ]);
});

describe("what would break the contract is seen (contract-watch.test.ts has the rest)", () => {
  const options = { plugins: ["cinder"], nodes: 1, mode: "node-only" } as const;
  const on = { component: "controller manager", plugin: "cinder", isOn: true, isDrained: false } as const;

  it("a record that is gone from its volume (contract.md C3)", () =>
    SkewWorld.play(options, false, async (world) => {
      const host = world.cluster.hostOf("node-1");
      const mount = host.mountsBelow("/n").find(({ target }) => target.includes("/pods/"));
      await host.writeFileAtomic(`${mount?.target}/records`, "other\n");
      await world.step(on);
      expect(world.watch.violations.join()).toMatch(
        /C3: cinder-1 reads \d+ of the \d+ bytes that were written to cinder-1/,
      );
    }));
});

describe("orders and flips", () => {
  it("a tour makes each flip once in every picture of gates, and ends where it began", () => {
    const start = uniformGates(2, ["aws-ebs", "cinder"], false);
    expect(tourOfFlips(start, ["aws-ebs", "cinder"])).toHaveLength(64 * 10);
    expect(possibleFlips(start, ["aws-ebs", "cinder"])).toHaveLength(10);
  });

  it("the orders are numbered, each once", () => {
    const count = orderCount(plugins, 2);
    expect(count).toBe(6);
    const orders = Array.from({ length: count }, (_, index) => orderNumbered(plugins, 2, index + 1));
    const texts = orders.map((flips) => flips.slice(0, 3).map(flipWords).join("; "));
    expect(new Set(texts).size).toBe(6);
    expect(texts[0]).toBe(
      "controller manager: aws-ebs on; node-1, drained: aws-ebs on; node-2, drained: aws-ebs on",
    );
    expect(texts[5]).toBe(
      "node-2, drained: aws-ebs on; node-1, drained: aws-ebs on; controller manager: aws-ebs on",
    );
    expect(orders[0]?.map(({ isOn }) => isOn)).toEqual([true, true, true, false, false, false]);
  });
});
