import type { CSINode, Node, Stored } from "@longshore/kube";
import { expect, it } from "vitest";
import { type CrossingJournal, journalText } from "./crossing-journal.ts";
import { crossingSubject } from "./crossing-subject.ts";
import { type DoneRecord, doneCountOf, NodesDone, namedNodesMax, nodesSeenDone } from "./nodes-done.ts";
import { boundedWait, waitWords } from "./wait.ts";

/** What a ConfigMap holds at most, in bytes. */
const configMapMax = 1024 * 1024;
/** As long as the name of a Node may be. */
const longName = (n: number) => `${"n".repeat(247)}-${String(n).padStart(5, "0")}`;
const names = (count: number) => Array.from({ length: count }, (_, n) => longName(n));
/** What the journal says after all of them. */
const after = (done: NodesDone, added: readonly string[]): DoneRecord =>
  added.map((name) => done.add(name)).at(-1) ?? { nodesDone: [] };

it("names all of few nodes, in order, and of many the newest, with how many went before", () => {
  const few = after(new NodesDone({ nodesDone: ["b"] }), ["a", "c"]);
  expect(few).toEqual({ nodesDone: ["b", "a", "c"] });
  const done = new NodesDone({ nodesDone: [] });
  const many = after(done, names(5000));
  expect(many.nodesDone).toEqual(names(5000).slice(-namedNodesMax));
  expect(doneCountOf(many)).toBe(5000);
  expect(done.has(longName(0))).toBe(true);
});

it("a journal of 5,000 nodes that waits for 100,000 objects fits into a ConfigMap many times", () => {
  const subjects = names(100_000).map((name) => ({ kind: "PersistentVolume", name, why: "x".repeat(500) }));
  const wait = boundedWait({ subjects });
  expect(waitWords(wait)).toMatch(/; and 99997 more$/);
  const journal: CrossingJournal = {
    version: 1,
    platform: "manual",
    plugin: "kubernetes.io/aws-ebs",
    direction: "migrate",
    startedAt: "2026-01-01T00:00:00Z",
    ...after(new NodesDone({ nodesDone: [] }), names(5000)),
    run: {
      startedAt: "2026-01-01T00:00:00Z",
      aliveAt: "2026-01-01T00:00:00Z",
      waiting: { since: "2026-01-01T00:00:00Z", ...wait },
    },
  };
  expect(Buffer.byteLength(journalText(journal))).toBeLessThan(configMapMax / 4);
});

it("a run that goes on learns the others from the nodes, and counts none twice", () => {
  const record = { nodesDone: ["n3"], nodesDoneEarlier: 2 };
  const done = new NodesDone(record, ["n1", "n2", "n3"]);
  expect(["n1", "n2", "n3", "n4"].map((name) => done.has(name))).toEqual([true, true, true, false]);
  expect(done.add("n4")).toEqual({ nodesDone: ["n1", "n2", "n3", "n4"] });
});

it("a node shows that it is done by its CSINode, and by no cordon of a crossing", () => {
  const subject = crossingSubject("aws-ebs");
  const node = (name: string, annotations = {}) => ({ metadata: { name, annotations } }) as Stored<Node>;
  const csiNode = (name: string, plugins: string) =>
    ({
      metadata: { name, annotations: { "storage.alpha.kubernetes.io/migrated-plugins": plugins } },
      spec: { drivers: [{ name: subject.driverName, nodeID: name, topologyKeys: [] }] },
    }) as unknown as Stored<CSINode>;
  const nodes = [
    node("over"),
    node("back"),
    node("cordoned", { "longshore.dev/cordoned-for-crossing": "aws-ebs" }),
    node("without"),
  ];
  const csiNodes = [
    csiNode("over", subject.inTreeName),
    csiNode("back", ""),
    csiNode("cordoned", subject.inTreeName),
  ];
  expect(nodesSeenDone(subject, "migrate", nodes, csiNodes)).toEqual(["over"]);
  expect(nodesSeenDone(subject, "rollback", nodes, csiNodes)).toEqual(["back", "without"]);
});
