"""A receiver of webhooks: webhooks.py SECRET [PORT]. It prints its address, then each event that it takes.

A call that is not signed with the secret, that was changed on the way or that is older than five minutes gets 400.
"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(sys.argv[1])


class Receiver(BaseHTTPRequestHandler):
    timeout = 30

    def do_POST(self) -> None:
        # The bytes as they came: JSON that was read and written again has another signature.
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        try:
            call = webhook.verify(body, {name.lower(): value for name, value in self.headers.items()})
            print(call["type"], call["data"].get("rid") or call["data"].get("sale_id"), flush=True)
            self.send_response(204)
        except WebhookVerificationError as error:
            print(f"refused: {error}", flush=True)
            self.send_response(400)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing beside the events."""


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Receiver)
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
