import { expect, test } from "vitest";
import { operatorArgs } from "./register-feature-gate-operator.ts";

const values = {
  kubernetes: "1.20",
  order: "any",
  plugins: "kubernetes.io/aws-ebs,kubernetes.io/cinder",
  "resync-period": 600_000,
} as const;

test("the operator knows the gates that the release has, and no other", async () => {
  const { knownGates, order, plugins } = await operatorArgs(values);
  expect(Object.keys(knownGates)).toContain("CSIMigrationAWSComplete");
  expect(Object.keys(knownGates)).not.toContain("CSIMigrationRBD");
  expect({ order, plugins }).toEqual({
    order: "any",
    plugins: ["kubernetes.io/aws-ebs", "kubernetes.io/cinder"],
  });
  const later = await operatorArgs({ ...values, kubernetes: "1.27", order: "two-sets" });
  expect(Object.keys(later.knownGates)).not.toContain("CSIMigrationAWS");
  expect(later.order).toBe("two-sets");
});

test.each([
  [{ kubernetes: "" }, "--kubernetes is required"],
  [{ kubernetes: "new" }, '--kubernetes: Kubernetes version "new"'],
  [{ plugins: "aws-ebs" }, '--plugins: "aws-ebs" is no plugin that migrates'],
])("%j: %s", async (given, message) => {
  await expect(operatorArgs({ ...values, ...given })).rejects.toThrow(message);
});
