import { methodsWithSecrets } from "@longshore/testing/csi";
import { expect, test } from "vitest";
import { driverSecretsOf, rpcsWithSecrets, SecretsError, secretStripper } from "./driver-secrets.ts";

test("secrets are read as csi-sanity reads them, and by the name of the call", () => {
  expect(
    driverSecretsOf({
      CreateVolumeSecret: { token: "a" },
      ControllerValidateVolumeCapabilitiesSecret: { token: "b" },
      NodeExpandVolume: { token: "c" },
      DeleteVolumeSecret: null,
    }),
  ).toEqual({
    CreateVolume: { token: "a" },
    ValidateVolumeCapabilities: { token: "b" },
    NodeExpandVolume: { token: "c" },
    DeleteVolume: {},
  });
  for (const nothing of [undefined, null, {}]) expect(driverSecretsOf(nothing)).toEqual({});
});

test.each([
  ["a list", ["hunter2"], "a mapping from RPC to secrets"],
  ["a text", "hunter2", "a mapping from RPC to secrets"],
  [
    "a call without secrets",
    { GetCapacitySecret: { token: "hunter2" } },
    '"GetCapacitySecret" is not a call with secrets',
  ],
  ["values that are no mapping", { CreateVolumeSecret: "hunter2" }, "CreateVolumeSecret must be a mapping"],
  [
    "a number",
    { CreateVolumeSecret: { pin: 1234 } },
    "CreateVolumeSecret.pin must be a string: put it in quotes",
  ],
] as const)("%s is refused, without its value", (_name, document, words) => {
  let message = "";
  try {
    driverSecretsOf(document);
  } catch (error) {
    expect(error).toBeInstanceOf(SecretsError);
    message = (error as Error).message;
  }
  expect(message).toContain(words);
  expect(message).not.toMatch(/hunter2|1234/);
});

test("values are taken out of texts, one that holds another as a whole; an empty one is none", () => {
  const strip = secretStripper({ CreateVolume: { a: "abc", b: "abcdef", c: "" } });
  expect(strip("x abcdef y abc z")).toBe("x ***stripped*** y ***stripped*** z");
});

test("values are taken out in every form, and nothing steers the terminal that shows the text", () => {
  const strip = secretStripper({ CreateVolume: { a: "p@ss word", b: "x" } });
  const encoded = `${encodeURIComponent("p@ss word")} ${Buffer.from("user:p@ss word").toString("base64")}`;
  expect(strip(encoded)).toBe("***stripped*** dXNlc***stripped***");
  expect(strip("one\ntwo\x1b[2J\u202e")).toBe("one\ntwo\\x1b[2J\\u202e");
});

test("the RPCs that can have secrets are those of the protocol", () => {
  expect([...rpcsWithSecrets].sort()).toEqual(methodsWithSecrets.map(({ name }) => name).sort());
});
