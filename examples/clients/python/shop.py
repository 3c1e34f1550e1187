"""A shop: signs a buyer in, finds a sale, buys, waits for the decision, reports the payment, cancels the order, sends the money back.

.venv/bin/python shop.py DEV_JSON BUYER       DEV_JSON: .seckill/dev.json of `seckill dev`
"""
import json
import sys
import time
from typing import TypeVar

import httpx
import jwt

from generated import admin, public
from generated.admin.api.orders import cancel_order, order_paid, order_refunded
from generated.admin.models import CancelBody, OrderWithPayments, PaidAnswer, PaidBody, RefundedAnswer, RefundedBody
from generated.admin.models import Order
from generated.public.api.orders import buy, show_order
from generated.public.api.sales import list_sales
from generated.public.models import BuyRequest, OrderStatus, Queued, SaleListAnswer, StatusOrder

T = TypeVar("T")


def answered(kind: type[T], answer: object) -> T:
    """The answer, or its problem as an error."""
    if not isinstance(answer, kind):
        sys.exit(f"{getattr(answer, 'code', answer)}: {getattr(answer, 'detail', '')}")
    return answer


with open(sys.argv[1], encoding="utf-8") as file:
    dev = json.load(file)
claims = {"sub": sys.argv[2], "iss": "seckill", "aud": "seckill", "exp": int(time.time()) + 3600}
login, timeout = jwt.encode(claims, dev["jwt_secret"], "HS256"), httpx.Timeout(30)
buyer = public.AuthenticatedClient(base_url=dev["api"], token=login, timeout=timeout)
shop = admin.AuthenticatedClient(base_url=dev["admin"], token=dev["admin_token"], timeout=timeout)

sales = answered(SaleListAnswer, list_sales.sync(client=buyer)).sales
sells = [sale for sale in sales if sale.state == "READY" and sale.pay_within_s]
open_to_all = [sale for sale in sells if not sale.token_required and not sale.needs]
sale_id = max(open_to_all, key=lambda sale: sale.remaining or 0).sale_id
request_id = answered(Queued, buy.sync(sale_id, client=buyer, body=BuyRequest(quantity=1))).request_id
status = answered(OrderStatus, show_order.sync(sale_id, request_id, client=buyer, wait=10))
while status.status == "QUEUED":
    status = answered(OrderStatus, show_order.sync(sale_id, request_id, client=buyer, wait=10))
order, payment_id = answered(StatusOrder, status.order), f"python:{request_id}"
money = PaidBody(payment_id=payment_id, amount=order.amount, currency=order.currency)
paid = answered(PaidAnswer, order_paid.sync(request_id, client=shop, body=money))
why = CancelBody(reason="the buyer sent it back")
cancelled = answered(OrderWithPayments, cancel_order.sync(request_id, client=shop, body=why))
refund = RefundedBody(payment_id=payment_id)
refunded = answered(RefundedAnswer, order_refunded.sync(request_id, client=shop, body=refund))
states = [order.state, answered(Order, paid.order).state, cancelled.order.state, refunded.payment.state]
print(json.dumps({"sale_id": sale_id, "request_id": request_id, "payment_id": payment_id, "states": states}))
