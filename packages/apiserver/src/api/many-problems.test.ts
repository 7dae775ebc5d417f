/** Answers to objects that have more problems than an answer reports. */
import { describe, expect, it } from "vitest";
import { applyConflict } from "../apply/apply-conflict.ts";
import { memberElement } from "../apply/path-element.ts";
import { asker } from "../testing/ask.ts";
import { aServer } from "../testing/world.ts";
import { adminUser } from "./api-request.ts";
import { invalid, invalidValue } from "./errors.ts";

const problems = (count: number, length: number) =>
  Array.from({ length: count }, (_, i) => invalidValue(`spec.list[${i}]`, "x".repeat(length), "wrong"));

describe("an object with many problems", () => {
  it("is refused with all of a few", () => {
    const { status } = invalid("", "Pod", "p", problems(500, 10));
    expect(status.details?.causes).toHaveLength(500);
    expect(status.message).not.toContain("more problems");
  });

  it.each([
    ["so many", 100_000, 10],
    ["so long", 500, 60_000],
  ])("is refused with the first of %s", (_name, count, length) => {
    const { status } = invalid("", "Pod", "p", problems(count, length));
    expect(status.details?.causes?.length).toBeLessThanOrEqual(1000);
    expect(status.message).toMatch(/, and more problems\]$/);
    expect(JSON.stringify(status).length).toBeLessThan(3_000_000);
  });

  it("shows the beginning of a value that is long", () => {
    const [problem] = problems(1, 10_000_000);
    expect(problem?.message.length).toBeLessThan(70_000);
    expect(problem?.message).toMatch(/…: wrong$/);
  });

  it("looks for no more problems than it reports", () => {
    const { server } = aServer();
    const { ask } = asker(server, adminUser);
    ask("create", "api/v1/namespaces", { metadata: { name: "a" } });
    const metadata = {
      name: "x",
      labels: Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`%${i}`, "%"])),
      finalizers: Array.from({ length: 200_000 }, () => ""),
    };
    try {
      ask("create", "api/v1/namespaces/a/configmaps", { metadata });
      expect.unreachable();
    } catch (error) {
      const { status } = error as ReturnType<typeof invalid>;
      expect(status.details?.causes).toHaveLength(1000);
      expect(status.details?.causes?.every(({ field }) => field === "metadata.labels")).toBe(true);
    }
  });
});

describe("an apply with many conflicts", () => {
  it("reports their number, and the first ones", () => {
    const children = new Map(
      Array.from({ length: 5000 }, (_, i) => [memberElement(`k${i}`), { member: true, children: new Map() }]),
    );
    const managers = ["a", "b"].map((name) => ({
      manager: { manager: name, operation: "Apply", apiVersion: "v1", subresource: "", time: undefined },
      set: { member: false, children },
    }));
    const { status } = applyConflict(managers as unknown as Parameters<typeof applyConflict>[0]);
    expect(status.message).toMatch(/^Apply failed with 10000 conflicts: .*… and 9000 more$/s);
    expect(status.details?.causes).toHaveLength(1000);
  });
});
