<?php
// Signs a pass as a shop does: php sign_pass.php SECRET SUB SALE TIER. Prints the text of the header Seckill-Pass.
//
// SECRET is the first of passes.secrets, 32 bytes or more. With a library for JWTs, e.g. firebase/php-jwt, it is one call:
// JWT::encode($claims, $secret, 'HS256').

function part(string $data): string
{
    return rtrim(strtr(base64_encode($data), '+/', '-_'), '=');
}

function sign_pass(string $secret, array $claims): string
{
    $claims += ['exp' => time() + 3600, 'jti' => bin2hex(random_bytes(16))];
    $signed = part(json_encode(['alg' => 'HS256', 'typ' => 'JWT'])) . '.' . part(json_encode($claims));
    return $signed . '.' . part(hash_hmac('sha256', $signed, $secret, true));
}

[, $secret, $sub, $sale, $tier] = $argv;
echo sign_pass($secret, ['sub' => $sub, 'sale' => $sale, 'tier' => $tier]), "\n";
