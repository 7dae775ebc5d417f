import {
  Controller,
  CsiCallError,
  create,
  type ListVolumesResponseSchema,
  ListVolumesResponseSchema as listSchema,
  type MessageInitShape,
  Node,
  NodeGetInfoResponseSchema,
} from "@longshore/csi";
import type { DescMethodUnary } from "@longshore/csi/transport";
import { expect, test } from "vitest";
import { Observations, observedRules } from "./observations.ts";

const secrets = { CreateVolume: { token: "hunter2hunter2", pin: "12" } };

function problemsOf(end: (observations: Observations) => void): Record<string, readonly string[]> {
  const observations = new Observations(secrets);
  end(observations);
  const found = observedRules.map((rule) => [rule, observations.problemsOf(rule)] as const);
  return Object.fromEntries(found.filter(([, problems]) => problems.length > 0));
}

const answer = (list: MessageInitShape<typeof ListVolumesResponseSchema>) =>
  problemsOf((observations) => {
    const method = Controller.method.listVolumes as DescMethodUnary;
    const response = create(listSchema, list);
    observations.onEnd({ method, request: create(method.input), response, error: undefined });
  });

test.each([
  ["a string of 128 bytes", { nextToken: "x".repeat(128) }, {}],
  [
    "one more",
    { nextToken: "x".repeat(129) },
    { strings: ["ListVolumes: next_token has 129 bytes, the limit is 128"] },
  ],
  [
    "bytes are counted, not characters",
    { nextToken: "ü".repeat(65) },
    { strings: ["ListVolumes: next_token has 130 bytes, the limit is 128"] },
  ],
  [
    "a string deep in a list",
    { entries: [{ volume: { volumeId: "v".repeat(200) } }] },
    { strings: ["ListVolumes: entries.volume.volume_id has 200 bytes, the limit is 128"] },
  ],
  ["ids of nodes have more room", { entries: [{ status: { publishedNodeIds: ["n".repeat(256)] } }] }, {}],
  [
    "but not for ever",
    { entries: [{ status: { publishedNodeIds: ["n".repeat(257)] } }] },
    { strings: ["ListVolumes: entries.status.published_node_ids has 257 bytes, the limit is 256"] },
  ],
  ["a value in a map may be long", { entries: [{ volume: { volumeContext: { a: "x".repeat(4095) } } }] }, {}],
  [
    "the map has a limit",
    { entries: [{ volume: { volumeContext: { a: "x".repeat(4096) } } }] },
    { maps: ["ListVolumes: entries.volume.volume_context has 4097 bytes, the limit is 4096"] },
  ],
  [
    "a negative size",
    { entries: [{ volume: { capacityBytes: -1n } }] },
    { numbers: ["ListVolumes: entries.volume.capacity_bytes is -1"] },
  ],
  [
    "a secret in a context",
    { entries: [{ volume: { volumeContext: { a: "token=hunter2hunter2" } } }] },
    { secrets: ["ListVolumes: entries.volume.volume_context holds a secret"] },
  ],
  ["a short one may come by chance", { nextToken: "12" }, {}],
] as const)("%s", (_name, list, expected) => {
  expect(answer(list as MessageInitShape<typeof ListVolumesResponseSchema>)).toEqual(expected);
});

test("a node's id may have 256 bytes", () => {
  const method = Node.method.nodeGetInfo as DescMethodUnary;
  const response = create(NodeGetInfoResponseSchema, { nodeId: "n".repeat(256) });
  expect(
    problemsOf((o) => o.onEnd({ method, request: create(method.input), response, error: undefined })),
  ).toEqual({});
});

test("statuses without a message, with details, with a secret; what came from no driver is no status", () => {
  const method = Controller.method.createVolume as DescMethodUnary;
  const refused = (detail: string, options: ConstructorParameters<typeof CsiCallError>[3] = {}) =>
    problemsOf((o) => {
      const error = new CsiCallError("CreateVolume", "INTERNAL", detail, options);
      o.onEnd({ method, request: create(method.input), response: undefined, error });
    });
  expect(refused("no room")).toEqual({});
  expect(refused(" ")).toEqual({ statusMessage: ["CreateVolume: status INTERNAL has no message"] });
  expect(refused("no", { hasDetails: true })).toEqual({
    statusDetails: ["CreateVolume: status INTERNAL has details"],
  });
  expect(refused("bad token hunter2hunter2")).toEqual({
    secrets: ["CreateVolume: the message of status INTERNAL holds a secret"],
  });
  const inBase64 = Buffer.from("user:hunter2hunter2").toString("base64");
  expect(refused(`bad login ${inBase64}`)).toEqual({
    secrets: ["CreateVolume: the message of status INTERNAL holds a secret"],
  });
  expect(refused("", { answered: false })).toEqual({});
});
