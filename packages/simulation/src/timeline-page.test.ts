import { expect, it } from "vitest";
import { DiskTimeline } from "./disk-timeline.ts";
import { timelinePage } from "./timeline-page.ts";
import { timelineScale } from "./timeline-scale.ts";

const hourMs = 3_600_000;
const attachedTo = (nodeName: string) => [{ diskId: "vol-1", nodeName, devicePath: "/dev/loop1" }];
const csiMount = {
  source: "/dev/loop1",
  target: "/n/node-1/plugins/kubernetes.io/csi/d/globalmount",
  fsType: "ext4",
  options: [],
};

function playedTimeline(): DiskTimeline {
  const timeline = new DiskTimeline();
  timeline.look(1000, { attachments: attachedTo("node-1"), mounts: new Map() });
  timeline.look(2000, {
    attachments: attachedTo("node-1"),
    mounts: new Map([["node-1", [csiMount as never]]]),
  });
  timeline.look(3000, { attachments: attachedTo("node-1"), mounts: new Map() });
  timeline.look(4000, { attachments: attachedTo("node-2"), mounts: new Map() });
  timeline.note({ atMs: 4100, step: 7, kind: "life", subject: "node-1", text: "crashes <b>" });
  timeline.note({ atMs: 4200, step: 8, kind: "call", subject: "node-1", text: "waits" });
  timeline.note({ atMs: 5000, step: 9, kind: "broken", subject: "the contract is broken:", text: "C2: x" });
  return timeline;
}

it("records who held which disk when, and how", () => {
  const spans = playedTimeline().spans();
  expect(spans).toEqual([
    { diskId: "vol-1", nodeName: "node-1", how: "attached", fromMs: 1000, toMs: 4000 },
    { diskId: "vol-1", nodeName: "node-1", how: "mounted csi", fromMs: 2000, toMs: 3000 },
    { diskId: "vol-1", nodeName: "node-2", how: "attached", fromMs: 4000, toMs: undefined },
  ]);
});

it("makes a page with a lane for each disk on each node, that runs nothing and loads nothing", () => {
  const page = timelinePage(playedTimeline(), { title: "Seed <1>", violations: ["C2: x & y"] });
  expect(page).toContain("vol-1 on node-1</text>");
  expect(page).toContain("vol-1 mounted csi on node-1, 2.0 s to 3.0 s");
  expect(page).toContain("vol-1 attached on node-2, 4.0 s to the end");
  expect(page).toContain("crashes &lt;b&gt;");
  expect(page).toContain("Seed &lt;1&gt;");
  expect(page).toContain("C2: x &amp; y");
  expect(page).toContain('<line class="broken"');
  expect(page).not.toMatch(/<script|https?:|step 8/);
});

it("draws long pauses short, and times between them in order", () => {
  const scale = timelineScale([0, 1000, 2000, 10 * hourMs, 10 * hourMs + 1000], 10 * hourMs + 2000, 1000);
  expect(scale.pauses).toEqual([{ fromMs: 2000, toMs: 10 * hourMs }]);
  const xs = [0, 500, 1000, 2000, hourMs, 10 * hourMs, 10 * hourMs + 2000].map((ms) => scale.x(ms));
  expect(xs).toEqual([...xs].sort((a, b) => a - b));
  expect(xs[0]).toBe(0);
  expect(xs.at(-1)).toBe(1000);
  // Two seconds before the pause, five of the pause, two after it.
  expect(scale.x(2000)).toBeCloseTo((1000 * 2) / 9);
});
