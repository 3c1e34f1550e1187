// Customers sign in with the ID token of the identity provider; the shop has no passwords. Its customer carries the `sub` of
// the token, and so does each order of seckill: that is how the two find each other.
import {
    AuthenticationStrategy, ExternalAuthenticationService, Injector, RequestContext, User,
} from '@vendure/core';
import gql from 'graphql-tag';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { settings } from './settings';

export const STRATEGY = 'oidc';

export class OidcStrategy implements AuthenticationStrategy<{ token: string }> {
    readonly name = STRATEGY;
    private accounts: ExternalAuthenticationService;
    private readonly keys = createRemoteJWKSet(new URL('/jwks', settings.idpUrl), { timeoutDuration: 5_000 });

    init(injector: Injector) {
        this.accounts = injector.get(ExternalAuthenticationService);
    }

    defineInputType() {
        return gql`input OidcInput { token: String! }`;
    }

    async authenticate(ctx: RequestContext, { token }: { token: string }): Promise<User | false | string> {
        // `aud` is this shop: an access token for seckill does not sign in here.
        const checks = { issuer: settings.idpUrl, audience: 'shop', algorithms: ['ES256'] };
        const verified = await jwtVerify(token, this.keys, checks).catch((error: Error) => error);
        if (verified instanceof Error) return verified.message;
        const { sub, email } = verified.payload as { sub: string; email: string };
        const known = await this.accounts.findCustomerUser(ctx, this.name, sub);
        if (known) return known;
        const names = { emailAddress: email, firstName: '', lastName: '' };
        return this.accounts.createCustomerAndUser(ctx, { strategy: this.name, externalIdentifier: sub, verified: true, ...names });
    }
}
