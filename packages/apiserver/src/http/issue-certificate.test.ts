/** Certificates as others read them: OpenSSL through Node, and its program where it is there. */
import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createAuthority, issueCertificate } from "./issue-certificate.ts";

const now = new Date("2026-03-04T05:06:07.890Z");
const directory = mkdtempSync(join(tmpdir(), "longshore-certificates-"));
afterAll(() => rmSync(directory, { recursive: true }));

/** What OpenSSL's program makes of it. */
function openssl(pem: string, ...args: readonly string[]): string {
  const file = join(directory, "certificate.pem");
  writeFileSync(file, pem);
  return execFileSync("openssl", ["x509", "-in", file, "-noout", ...args], { encoding: "utf8" });
}

describe("an authority", async () => {
  const authority = await createAuthority("longshore", now);
  const certificate = new X509Certificate(authority.certificate);

  it("is one, and signs itself", () => {
    expect(certificate.ca).toBe(true);
    expect(certificate.subject).toBe("CN=longshore");
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.checkPrivateKey(createPrivateKey(authority.key))).toBe(true);
  });

  it("is valid from the day before, for ten years", () => {
    expect(certificate.validFrom).toBe("Mar  3 05:06:07 2026 GMT");
    expect(certificate.validTo).toBe("Mar  1 05:06:07 2036 GMT");
  });

  it("has the extensions of one", () => {
    const text = openssl(authority.certificate, "-text");
    expect(text).toContain("Version: 3 (0x2)");
    expect(text).toMatch(/Key Usage: critical\n +Digital Signature, Certificate Sign\n/);
    expect(text).toMatch(/Basic Constraints: critical\n +CA:TRUE\n/);
    expect(text).toMatch(/Subject Key Identifier: *\n +(?:[0-9A-F]{2}:){19}[0-9A-F]{2}\n/);
  });

  it("has a unique serial number", async () => {
    const other = new X509Certificate((await createAuthority("longshore", now)).certificate);
    expect(other.serialNumber).not.toBe(certificate.serialNumber);
    expect(certificate.serialNumber).toMatch(/^[4-7][0-9A-F]{31}$/);
  });
});

describe("an issued certificate", async () => {
  const authority = await createAuthority("longshore ⚓", now);
  const issuer = new X509Certificate(authority.certificate);
  const hosts = [
    "127.0.0.1",
    "::1",
    "2001:db8::ff:0:12",
    "::ffff:10.0.0.1",
    "fe80::",
    "localhost",
    "kubernetes.default",
  ];
  const server = await issueCertificate(authority, { commonName: "kube-apiserver", hosts, now });
  const certificate = new X509Certificate(server.certificate);

  it("is the authority's, and no authority itself", () => {
    expect(certificate.checkIssued(issuer)).toBe(true);
    expect(certificate.verify(issuer.publicKey)).toBe(true);
    expect(certificate.issuer).toBe(issuer.subject);
    expect(certificate.ca).toBe(false);
    expect(certificate.checkPrivateKey(createPrivateKey(server.key))).toBe(true);
  });

  it("names its authority's key", () => {
    const identifier = /Key Identifier: *\n +(?:keyid:)?([0-9A-F:]{59})/;
    const [, of] = identifier.exec(openssl(server.certificate, "-text")) ?? [];
    const [, its] = identifier.exec(openssl(authority.certificate, "-text")) ?? [];
    expect(of).toBeDefined();
    expect(of).toBe(its);
  });

  it.each(hosts)("is good for the host %s", (host) => {
    const found =
      host.includes(":") || /^\d/.test(host) ? certificate.checkIP(host) : certificate.checkHost(host);
    expect(found).toBe(host);
  });

  it("is good for no other host", () => {
    expect(certificate.checkHost("kubernetes.other")).toBeUndefined();
    expect(certificate.checkIP("127.0.0.2")).toBeUndefined();
    expect(certificate.checkIP("::2")).toBeUndefined();
  });

  it("is for servers, with hosts; for clients, without", async () => {
    const client = await issueCertificate(authority, {
      commonName: "system:node:ñ",
      organizations: ["system:nodes", "crew"],
      now,
    });
    const read = new X509Certificate(client.certificate);
    expect(certificate.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
    expect(read.keyUsage).toEqual(["1.3.6.1.5.5.7.3.2"]);
    expect(read.subjectAltName).toBeUndefined();
    expect(read.toLegacyObject().subject).toEqual({ O: ["system:nodes", "crew"], CN: "system:node:ñ" });
  });

  it("verifies by OpenSSL's strict rules", () => {
    const ca = join(directory, "ca.pem");
    const own = join(directory, "own.pem");
    writeFileSync(ca, authority.certificate);
    writeFileSync(own, server.certificate);
    const atTime = String((now.getTime() / 1000) | 0);
    const args = ["verify", "-x509_strict", "-purpose", "sslserver", "-attime", atTime, "-CAfile", ca, own];
    expect(execFileSync("openssl", args, { encoding: "utf8" })).toBe(`${own}: OK\n`);
  });

  it.each([
    ["1969", "1969-06-01T00:00:00Z", "May 31 00:00:00 1969 GMT", "May 30 00:00:00 1979 GMT"],
    ["beyond two digits", "2045-06-01T00:00:00Z", "May 31 00:00:00 2045 GMT", "May 30 00:00:00 2055 GMT"],
    ["before two digits", "1949-06-01T00:00:00Z", "May 31 00:00:00 1949 GMT", "May 30 00:00:00 1959 GMT"],
  ])("encodes times: %s", async (_, at, from, to) => {
    const issued = await issueCertificate(authority, { commonName: "x", now: new Date(at) });
    const { validFrom, validTo } = new X509Certificate(issued.certificate);
    expect([validFrom, validTo]).toEqual([from, to]);
  });

  it("has a name as long as one likes", async () => {
    const commonName = "n".repeat(70_000);
    const issued = await issueCertificate(authority, { commonName, now });
    const again = await issueCertificate(issued, { commonName: "below", now });
    expect(new X509Certificate(again.certificate).toLegacyObject().issuer).toEqual({ CN: commonName });
  });
});

it("a certificate that another program made can be the authority", async () => {
  const key = join(directory, "theirs.key");
  const ca = join(directory, "theirs.crt");
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...["-subj", "/O=Their company/OU=Ops/CN=Their CA", "-keyout", key, "-out", ca],
    ],
    { stdio: "ignore" },
  );
  const authority = { certificate: readFileSync(ca, "utf8"), key: readFileSync(key, "utf8") };
  const issued = await issueCertificate(authority, {
    commonName: "x",
    hosts: ["localhost"],
    now: new Date(),
  });
  const issuer = new X509Certificate(authority.certificate);
  const certificate = new X509Certificate(issued.certificate);
  expect(certificate.checkIssued(issuer)).toBe(true);
  expect(certificate.verify(issuer.publicKey)).toBe(true);
});
