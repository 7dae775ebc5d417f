/**
 * CertificateSigningRequests: who asks is set by the server, and approving, denying and signing take the right to do so for
 * the signer (kubernetes plugin/pkg/admission/certificates: approval, signing, subjectrestriction).
 */
import type { KubeObject } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
import { mastersGroup } from "../authorization/authorizer.ts";
import { groupResource, type KindRequest, type RegistryContext } from "../registry/registry-context.ts";
import type { AdmissionPlugin } from "./admission-chain.ts";

type CertificateRequest = KubeObject & {
  readonly spec?: { readonly signerName?: string };
  readonly status?: { readonly certificate?: string };
};

/** Sets who asks for a certificate, and asks leave for what is done with a signer. */
export const certificateRequests: AdmissionPlugin = {
  name: "CertificateApproval",
  onCreate(_context, { of, user }, object) {
    if (of.group !== "certificates.k8s.io" || of.kind !== "CertificateSigningRequest") return object;
    const {
      username: _u,
      uid: _i,
      groups: _g,
      extra: _e,
      ...asked
    } = ((object as CertificateRequest).spec ?? {}) as Record<string, unknown>;
    refuseMasters(asked, object.metadata?.name ?? "");
    const { name, uid = "", groups = [], extra = {} } = user;
    const who = {
      username: name,
      ...(uid === "" ? {} : { uid }),
      ...(groups.length === 0 ? {} : { groups }),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
    };
    return { ...object, spec: { ...asked, ...who } } as KubeObject;
  },
  onStatusUpdate(context, request, next, old) {
    if (request.of.group !== "certificates.k8s.io") return;
    const before = (old as CertificateRequest).status?.certificate;
    const isSigned = (next as CertificateRequest).status?.certificate !== before;
    const verb = request.subresource === "approval" ? "approve" : isSigned ? "sign" : undefined;
    if (verb !== undefined) requireRight(context, request, verb, old as CertificateRequest);
  },
};

const clientSigner = "kubernetes.io/kube-apiserver-client";

/**
 * No client certificate is asked for that would make its holder an administrator for as long as it lasts (plugin
 * certificates/subjectrestriction). @throws KubeApiError 403
 */
function refuseMasters({ signerName, request }: Readonly<Record<string, unknown>>, name: string): void {
  if (signerName !== clientSigner || typeof request !== "string") return;
  if (!organizationsOf(request).includes(mastersGroup)) return;
  const resource = { group: "certificates.k8s.io", resource: "certificatesigningrequests" };
  const why = `use of ${clientSigner} signer with ${mastersGroup} group is not allowed`;
  throw forbidden(resource, name, why);
}

/** Of DER: an object identifier, `organizationName` (RFC 5280, 4.1.2.4). */
const organizationName = Buffer.from([0x06, 0x03, 0x55, 0x04, 0x0a]);

/** The organizations of a certificate request (PEM in base64): short texts wherever they are, as names of groups are. */
function organizationsOf(request: string): readonly string[] {
  const pem = Buffer.from(request, "base64").toString("latin1");
  const der = Buffer.from(pem.replace(/-----[^-]+-----/g, ""), "base64");
  const found: string[] = [];
  for (let at = der.indexOf(organizationName); at >= 0; at = der.indexOf(organizationName, at + 1)) {
    // The type of the text, its length, and the text.
    const start = at + organizationName.length + 2;
    const length = der[start - 1] ?? 0;
    found.push(der.subarray(start, start + length).toString("utf8"));
  }
  return found;
}

/** For one signer, or for all of its domain: `example.com/*`. @throws KubeApiError 403 */
function requireRight(
  { authorizer }: RegistryContext,
  request: KindRequest,
  verb: "approve" | "sign",
  { metadata, spec }: CertificateRequest,
): void {
  const { signerName = "" } = spec ?? {};
  const { user, of, version } = request;
  const mayFor = (name: string) =>
    authorizer.authorize({ user, verb, group: of.group, version, resource: "signers", name }).allowed;
  if (mayFor(signerName) || mayFor(`${signerName.split("/")[0]}/*`)) return;
  const why = `user not permitted to ${verb} requests with signerName ${JSON.stringify(signerName)}`;
  throw forbidden(groupResource(request.of), metadata?.name ?? "", why);
}
