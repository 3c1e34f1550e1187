// Authorization code with PKCE, in the page itself. Tokens live as long as the tab.
const text = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '');
const random = () => text(crypto.getRandomValues(new Uint8Array(32)));
const here = () => `${location.origin}/`;

export async function goToSignIn(idp) {
  const [verifier, state] = [random(), random()];
  sessionStorage.setItem('sign-in', JSON.stringify({ verifier, state }));
  const challenge = text(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier)));
  location.href = `${idp}/auth?${new URLSearchParams({
    client_id: 'shop', response_type: 'code', scope: 'openid email buy', redirect_uri: here(), state,
    code_challenge: challenge, code_challenge_method: 'S256',
  })}`;
}

/** The ID token when this page was opened by the provider, else undefined. */
export async function comeBack(idp) {
  const query = new URLSearchParams(location.search);
  if (!query.has('code')) return undefined;
  const { verifier, state } = JSON.parse(sessionStorage.getItem('sign-in') ?? '{}');
  sessionStorage.removeItem('sign-in');
  history.replaceState(null, '', '/');
  if (query.get('state') !== state) throw new Error('This answer is not to our question: sign in again.');
  const response = await fetch(`${idp}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code', client_id: 'shop', code: query.get('code'), redirect_uri: here(), code_verifier: verifier,
    }),
  });
  const tokens = await response.json();
  if (!response.ok) throw new Error(tokens.error_description);
  sessionStorage.setItem('access', tokens.access_token);
  return tokens.id_token;
}
