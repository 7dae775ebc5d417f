/**
 * CertificateSigningRequests: who asks is set by the server, and approving, denying and signing take the right to do so for
 * the signer (kubernetes plugin/pkg/admission/certificates: approval, signing, subjectrestriction).
 */
import type { KubeObject } from "@longshore/kube";
import { forbidden } from "../api/errors.ts";
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
