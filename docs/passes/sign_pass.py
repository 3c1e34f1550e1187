#!/usr/bin/env python3
"""Signs a pass as a shop does: sign_pass.py SECRET SUB SALE TIER. Prints the text of the header Seckill-Pass.

SECRET is the first of passes.secrets, 32 bytes or more. With a library for JWTs, e.g. PyJWT, it is one call:
jwt.encode(claims, secret, "HS256").
"""
import base64, hashlib, hmac, json, secrets, sys, time


def part(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign_pass(secret: str, claims: dict) -> str:
    claims = {"exp": int(time.time()) + 3600, "jti": secrets.token_hex(16), **claims}
    signed = ".".join(part(json.dumps(each).encode()) for each in ({"alg": "HS256", "typ": "JWT"}, claims))
    return signed + "." + part(hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest())


if __name__ == "__main__":
    secret, sub, sale, tier = sys.argv[1:]
    print(sign_pass(secret, {"sub": sub, "sale": sale, "tier": tier}))
