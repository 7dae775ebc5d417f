import { ConfigError } from "@longshore/kube";
import { expect, test } from "vitest";
import { kubeconfigOf } from "./kubeconfig.ts";

test("what is wrong with a kubeconfig is said with the flag or variable that names it", async () => {
  const read = kubeconfigOf("KUBECONFIG", { path: "/none/config" });
  await expect(read).rejects.toThrow("KUBECONFIG: kubeconfig /none/config does not exist: check the path");
  await expect(read).rejects.toThrow(ConfigError);
});
