/**
 * With what others check the tokens of service accounts (OpenID Connect discovery,
 * kubernetes keps/sig-auth/1393-oidc-discovery).
 */
import { header } from "./exchange.ts";
import { checkReads, type PathEndpoint } from "./path-endpoint.ts";
import { send } from "./respond.ts";

/** The document that names the issuer, and the set of its keys. */
export const tokenKeyEndpoints: readonly PathEndpoint[] = [
  {
    path: "/.well-known/openid-configuration",
    answer(call) {
      checkReads(call);
      const { server, request, response } = call;
      const host = header(request, "host") ?? header(request, ":authority") ?? "";
      const document = {
        issuer: server.accounts.issuer,
        jwks_uri: `https://${host}/openid/v1/jwks`,
        response_types_supported: ["id_token"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["ES256"],
      };
      const maxAge = { "cache-control": "public, max-age=3600" };
      send(request, response, 200, JSON.stringify(document), "application/json", maxAge);
    },
  },
  {
    path: "/openid/v1/jwks",
    answer(call) {
      checkReads(call);
      const { server, request, response } = call;
      const maxAge = { "cache-control": "public, max-age=3600" };
      const keys = JSON.stringify(server.accounts.keySet);
      send(request, response, 200, keys, "application/jwk-set+json", maxAge);
    },
  },
];
