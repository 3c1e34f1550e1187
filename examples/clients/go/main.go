// A shop: signs a buyer in, finds a sale, buys, waits for the decision, reports the payment, cancels the order, sends the money back.
//
//	./shop DEV_JSON BUYER       DEV_JSON: .seckill/dev.json of `seckill dev`
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"seckill.example/shop/generated/admin"
	"seckill.example/shop/generated/public"
)

// login signs a buyer's token as a login service does.
func login(secret, sub string) string {
	part := base64.RawURLEncoding.EncodeToString
	claims := fmt.Sprintf(`{"sub":%q,"iss":"seckill","aud":"seckill","exp":%d}`, sub, time.Now().Add(time.Hour).Unix())
	signed := part([]byte(`{"alg":"HS256"}`)) + "." + part([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + part(mac.Sum(nil))
}

// answered is the answer; a problem ends the program.
func answered[T any](answer *T, response *http.Response, err error) *T {
	if refused, is := err.(interface{ Body() []byte }); is {
		log.Fatalf("%v: %s", err, refused.Body())
	} else if err != nil {
		log.Fatal(err)
	}
	return answer
}

func main() {
	var dev struct {
		Api        string
		Admin      string
		AdminToken string `json:"admin_token"`
		JwtSecret  string `json:"jwt_secret"`
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &dev)
	}
	if err != nil {
		log.Fatal(err)
	}
	ctx, client := context.Background(), &http.Client{Timeout: 30 * time.Second}
	buyers, shops := public.NewConfiguration(), admin.NewConfiguration()
	buyers.Servers, buyers.HTTPClient = public.ServerConfigurations{{URL: dev.Api}}, client
	buyers.AddDefaultHeader("Authorization", "Bearer "+login(dev.JwtSecret, os.Args[2]))
	shops.Servers, shops.HTTPClient = admin.ServerConfigurations{{URL: dev.Admin}}, client
	shops.AddDefaultHeader("Authorization", "Bearer "+dev.AdminToken)
	buyer, shop := public.NewAPIClient(buyers), admin.NewAPIClient(shops)

	saleId, most := "", int64(0)
	for _, sale := range answered(buyer.SalesAPI.ListSales(ctx).Execute()).Sales {
		sells := sale.State == "READY" && sale.GetPayWithinS() > 0 && !sale.TokenRequired && sale.Needs.Get() == nil
		if sells && sale.GetRemaining() > most {
			saleId, most = sale.SaleId, sale.GetRemaining()
		}
	}
	body := *public.NewBuyRequest()
	id := answered(buyer.OrdersAPI.Buy(ctx, saleId).BuyRequest(body).Execute()).RequestId
	status := answered(buyer.OrdersAPI.ShowOrder(ctx, saleId, id).Wait(10).Execute())
	for status.Status == "QUEUED" {
		status = answered(buyer.OrdersAPI.ShowOrder(ctx, saleId, id).Wait(10).Execute())
	}
	order, payment := status.GetOrder(), "go:"+id
	money := *admin.NewPaidBody(order.Amount, order.Currency, payment)
	paid := answered(shop.OrdersAPI.OrderPaid(ctx, id).PaidBody(money).Execute()).GetOrder()
	why := *admin.NewCancelBody("the buyer sent it back")
	cancelled := answered(shop.OrdersAPI.CancelOrder(ctx, id).CancelBody(why).Execute()).Order
	refund := *admin.NewRefundedBody(payment)
	refunded := answered(shop.OrdersAPI.OrderRefunded(ctx, id).RefundedBody(refund).Execute())
	states := []string{order.GetState(), paid.GetState(), cancelled.GetState(), refunded.Payment.State}
	line, _ := json.Marshal(map[string]any{"sale_id": saleId, "request_id": id, "payment_id": payment, "states": states})
	fmt.Println(string(line))
}
