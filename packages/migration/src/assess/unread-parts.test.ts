import { describe, expect, it } from "vitest";
import { withoutUnreadParts } from "./unread-parts.ts";

const container = {
  name: 'a ] } \\" "volumes":[',
  args: [["x"], { containers: [1] }],
  image: "i".repeat(200),
};
const pod = {
  metadata: {
    name: "p",
    managedFields: [{ fieldsV1: { "f:containers": {} } }],
    annotations: { a: '"images":[' },
  },
  spec: { containers: [container, container], volumes: [{ name: "v" }], initContainers: [], nodeName: "n" },
  status: { containerStatuses: [{ name: "x", text: "y".repeat(400) }], phase: "Running" },
};
const left = {
  ...pod,
  metadata: { ...pod.metadata, managedFields: [] },
  spec: { ...pod.spec, containers: [] },
  status: { ...pod.status, containerStatuses: [] },
};

describe("the text of an object without what no rule looks at", () => {
  it.each([undefined, 1, 4])("has everything else, indented by %s", (indent) => {
    const text = withoutUnreadParts(JSON.stringify(pod, undefined, indent));
    expect(JSON.parse(text)).toEqual(left);
  });

  it("is the whole text where a list does not end, so that parsing it fails as it would", () => {
    const cut = JSON.stringify(pod).slice(0, 500).padEnd(700, "x");
    expect(withoutUnreadParts(cut)).toContain('"containers":[{"name"');
  });

  it("keeps a member of such a name that is no list", () => {
    const odd = { images: { volumes: [1] }, containers: "x".repeat(700) };
    expect(JSON.parse(withoutUnreadParts(JSON.stringify(odd)))).toEqual(odd);
  });
});
