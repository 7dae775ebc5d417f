import { KubeApiError } from "@longshore/kube";
import { afterEach, expect, it, vi } from "vitest";
import { namingAccount } from "./cluster-access.ts";
import { failureText } from "./exit.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const refused = (code: number, message: string) =>
  new KubeApiError({ kind: "Status", apiVersion: "v1", status: "Failure", code, message });

it("of credentials that the server does not accept it says whose they are", async () => {
  vi.stubEnv("KUBECONFIG", "");
  const words = async (flags: { readonly kubeconfig?: string }) =>
    failureText(await namingAccount(flags, refused(401, "Unauthorized")));
  expect(await words({ kubeconfig: "admin.conf" })).toBe(
    "the API server does not accept the credentials of the user of admin.conf: renew them, or name another context with --context: Unauthorized",
  );
  expect(await words({})).toContain("the account of this pod");
});

it("leaves other errors as they are", async () => {
  for (const error of [refused(403, "forbidden"), new Error("refused")]) {
    expect(await namingAccount({}, error)).toBe(error);
  }
});
