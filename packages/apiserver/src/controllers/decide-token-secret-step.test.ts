/** The decisions about Secrets that hold the tokens of service accounts, as tables. */
import { pureDecision } from "@longshore/kube/testing";
import { expect, test } from "vitest";
import {
  type AccountLike,
  accountNameAnnotation,
  accountUidAnnotation,
  decideTokenSecretStep,
  needsTokenSecret,
  type SecretLike,
  type TokenSecretStep,
  tokenSecretType,
} from "./decide-token-secret-step.ts";

const stored = (name: string, more: object = {}) => ({
  metadata: { name, namespace: "team", uid: `uid of ${name}`, resourceVersion: "1", ...more },
});
const secret = (annotations: Record<string, string>, more: object = {}): SecretLike => ({
  ...stored("tok", { annotations }),
  type: tokenSecretType,
  ...more,
});
const bot: AccountLike = stored("bot");
const ofBot = { [accountNameAnnotation]: "bot" };
const ofThisBot = { ...ofBot, [accountUidAnnotation]: "uid of bot" };
const ofEarlierBot = { ...ofBot, [accountUidAnnotation]: "uid of an earlier bot" };
const filled = { data: { token: "dG9rZW4=" } };
const leaving = { ...stored("tok", { annotations: ofBot, deletionTimestamp: "now" }), type: tokenSecretType };

const secrets: readonly [string, SecretLike, AccountLike | undefined, TokenSecretStep["step"]][] = [
  ["of another type", secret(ofBot, { type: "Opaque" }), undefined, "done"],
  ["that is being deleted", leaving, undefined, "done"],
  ["of no account", secret({}), undefined, "deleteSecret"],
  ["of an account that is gone", secret(ofThisBot, filled), undefined, "deleteSecret"],
  ["of an earlier account of the name", secret(ofEarlierBot, filled), bot, "deleteSecret"],
  ["without a token", secret(ofThisBot), bot, "fillSecret"],
  ["with an empty token", secret(ofThisBot, { data: { token: "" } }), bot, "fillSecret"],
  ["with a token, but no UID", secret(ofBot, filled), bot, "fillSecret"],
  ["with a token and the UID", secret(ofThisBot, filled), bot, "done"],
];

test.each(secrets)("a Secret %s", (_name, observed, account, expected) => {
  const decide = pureDecision((of: SecretLike) => decideTokenSecretStep(of, account));
  const step = decide(observed);
  expect(step).toEqual(expected === "fillSecret" ? { step: expected, account } : { step: expected });
});

test.each([
  ["that lists none", bot, [], true],
  ["that lists an image pull Secret", bot, [secret({}, { type: "Opaque" })], true],
  ["that lists a token Secret", bot, [secret(ofBot)], false],
  ["that is being deleted", stored("bot", { deletionTimestamp: "now" }), [], false],
] as const)("an account %s", (_name, account, listed, expected) => {
  expect(needsTokenSecret(account, listed)).toBe(expected);
});
